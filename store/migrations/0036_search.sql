-- +goose Up

-- What a search finds: the words of one record, or of a part of one such as a message, folded and separated by blanks, with a
-- blank at both ends. Engines index the words of both columns. The table is derived: it is filled again when it is empty.
CREATE TABLE search_documents (
	number    INTEGER NOT NULL PRIMARY KEY,
	source    TEXT    NOT NULL, -- the type of the audit entries about the record or part
	source_id TEXT    NOT NULL,
	rec_id    TEXT    NOT NULL, -- of the record that is found
	title     TEXT    NOT NULL, -- names and titles
	body      TEXT    NOT NULL, -- everything else: addresses, numbers, ids, messages
	CONSTRAINT search_documents_source_key UNIQUE (source, source_id)
);
CREATE INDEX search_documents_rec_id_idx ON search_documents (rec_id);

-- How far the documents follow the audit trail, and how far each source has been read for the first time.
CREATE TABLE search_progress (
	name     TEXT   NOT NULL PRIMARY KEY, -- empty: the audit trail; otherwise the source
	position TEXT   NOT NULL,             -- the last id that was read
	seq      BIGINT NOT NULL,             -- the last audit entry that was read
	removals BIGINT NOT NULL,             -- how often documents were removed at once
	done     BOOLEAN NOT NULL
);

-- Sort keys of names: Ä beside A, ß as ss, e beside é. Those of existing rows are filled in the background.
ALTER TABLE customers ADD COLUMN last_name_order TEXT NOT NULL DEFAULT '';
ALTER TABLE customers ADD COLUMN first_name_order TEXT NOT NULL DEFAULT '';
ALTER TABLE personas ADD COLUMN last_name_order TEXT NOT NULL DEFAULT '';
ALTER TABLE personas ADD COLUMN first_name_order TEXT NOT NULL DEFAULT '';
ALTER TABLE users ADD COLUMN display_name_order TEXT NOT NULL DEFAULT '';
CREATE INDEX customers_last_name_order_idx ON customers (last_name_order, id);
CREATE INDEX personas_last_name_order_idx ON personas (last_name_order, id);
CREATE INDEX users_display_name_order_idx ON users (display_name_order, id);

-- +goose Down

DROP INDEX users_display_name_order_idx;
DROP INDEX personas_last_name_order_idx;
DROP INDEX customers_last_name_order_idx;
ALTER TABLE users DROP COLUMN display_name_order;
ALTER TABLE personas DROP COLUMN first_name_order;
ALTER TABLE personas DROP COLUMN last_name_order;
ALTER TABLE customers DROP COLUMN first_name_order;
ALTER TABLE customers DROP COLUMN last_name_order;
DROP TABLE search_progress;
DROP TABLE search_documents;
