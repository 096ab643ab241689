-- +goose Up

-- The external id of a customer, from their metadata; empty for none. Imports find customers by it.
ALTER TABLE customers ADD COLUMN external_id TEXT NOT NULL DEFAULT '';
CREATE INDEX customers_external_id_idx ON customers (external_id, id) WHERE external_id <> '';

-- Files of records that become records row by row. The file is in import_chunks, encrypted with a key of its own, until the import ends.
CREATE TABLE imports (
	id           TEXT    NOT NULL PRIMARY KEY,
	state        TEXT    NOT NULL,
	dry_run      BOOLEAN NOT NULL,
	on_duplicate TEXT    NOT NULL,
	sha256       TEXT    NOT NULL,
	size         BIGINT  NOT NULL,
	row_count    BIGINT  NOT NULL, -- of the file, without its header
	done         BIGINT  NOT NULL DEFAULT 0, -- rows, from the first
	created      BIGINT  NOT NULL DEFAULT 0,
	updated      BIGINT  NOT NULL DEFAULT 0,
	duplicates   BIGINT  NOT NULL DEFAULT 0,
	rejected     BIGINT  NOT NULL DEFAULT 0,
	rejections   BIGINT  NOT NULL DEFAULT 0, -- rows of import_rejections
	failure      TEXT    NOT NULL DEFAULT '', -- code of an error
	failure_args TEXT    NOT NULL DEFAULT '', -- JSON
	key_sealed   TEXT    NOT NULL, -- empty: the file cannot be read any more
	chunks       BIGINT  NOT NULL, -- rows of import_chunks that may exist
	created_at   BIGINT  NOT NULL,
	created_by   TEXT    NOT NULL,
	started_at   BIGINT,
	finished_at  BIGINT,
	CONSTRAINT imports_state_check CHECK (state = 'uploading' OR state = 'queued' OR state = 'running' OR state = 'done' OR state = 'failed'),
	CONSTRAINT imports_on_duplicate_check CHECK (on_duplicate = 'skip' OR on_duplicate = 'update' OR on_duplicate = 'reject')
);
CREATE INDEX imports_created_at_idx ON imports (created_at, id);
CREATE INDEX imports_created_by_idx ON imports (created_by, created_at, id);
CREATE INDEX imports_unfinished_idx ON imports (id, created_by) WHERE state = 'queued' OR state = 'running';

CREATE TABLE import_chunks (
	import_id TEXT   NOT NULL REFERENCES imports (id),
	number    BIGINT NOT NULL,
	content   BYTEA  NOT NULL,
	PRIMARY KEY (import_id, number)
);

-- Why rows were rejected: the column and the key of a text with its values, in JSON.
CREATE TABLE import_rejections (
	import_id TEXT   NOT NULL REFERENCES imports (id),
	number    BIGINT NOT NULL,
	line      BIGINT NOT NULL,
	field     TEXT   NOT NULL,
	text_key  TEXT   NOT NULL,
	text_args TEXT   NOT NULL,
	PRIMARY KEY (import_id, number)
);

-- The records that lines of a file became, so that no line becomes two.
CREATE TABLE import_rows (
	owner_id   TEXT   NOT NULL,
	sha256     TEXT   NOT NULL,
	line       BIGINT NOT NULL,
	record_id  TEXT   NOT NULL,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (owner_id, sha256, line)
);
CREATE INDEX import_rows_created_at_idx ON import_rows (created_at);

-- +goose Down

DROP TABLE import_rows;
DROP TABLE import_rejections;
DROP TABLE import_chunks;
DROP TABLE imports;
DROP INDEX customers_external_id_idx;
ALTER TABLE customers DROP COLUMN external_id;
