-- +goose Up

-- Files that belong to a document, a message or a task. The content is in file_chunks, encrypted with the key of the file. A deleted
-- file leaves a row without name, key and content: the change feed finds the record that it belonged to.
CREATE TABLE files (
	id           TEXT   NOT NULL PRIMARY KEY,
	record_type  TEXT   NOT NULL,
	record_id    TEXT   NOT NULL,
	parent_id    TEXT   NOT NULL, -- the customer of a document or task, the chat of a message
	account_id   TEXT   NOT NULL, -- the customer or user whose quota the file uses
	name         TEXT   NOT NULL,
	media_type   TEXT   NOT NULL,
	size         BIGINT NOT NULL,
	chunks       BIGINT NOT NULL, -- rows of file_chunks that may exist
	sha256       TEXT   NOT NULL,
	charged      BIGINT NOT NULL, -- bytes of the quota
	status       TEXT   NOT NULL,
	key_sealed   TEXT   NOT NULL, -- empty: the content cannot be read any more
	scan_after   BIGINT NOT NULL DEFAULT 0,
	uploaded_by  TEXT   NOT NULL,
	created_at   BIGINT NOT NULL,
	CONSTRAINT files_status_check CHECK (status = 'uploading' OR status = 'discarded' OR status = 'checking' OR status = 'ready' OR status = 'infected' OR status = 'deleted')
);
CREATE INDEX files_parent_id_idx ON files (parent_id, record_type, created_at, id);
CREATE INDEX files_record_id_idx ON files (record_id, created_at, id);
CREATE INDEX files_account_id_idx ON files (account_id, status, charged);
CREATE INDEX files_uploaded_by_idx ON files (uploaded_by, record_type, id);
CREATE INDEX files_status_idx ON files (status, scan_after, id);
CREATE INDEX files_unreadable_idx ON files (chunks, id) WHERE key_sealed = '';

-- The content of files in pieces of at most 256 KiB.
CREATE TABLE file_chunks (
	file_id TEXT   NOT NULL REFERENCES files (id),
	number  BIGINT NOT NULL,
	content BYTEA  NOT NULL,
	PRIMARY KEY (file_id, number)
);

-- +goose Down
DROP TABLE file_chunks;
DROP TABLE files;
