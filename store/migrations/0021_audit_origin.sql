-- +goose Up

-- Where an entry comes from, and what kind of entry it is. Entries from before have form 1; their hash covers none of
-- these columns.
ALTER TABLE audit_entries ADD COLUMN form INTEGER NOT NULL DEFAULT 1;      -- of the hash
ALTER TABLE audit_entries ADD COLUMN kind TEXT;                            -- of a security event; NULL for a change
ALTER TABLE audit_entries ADD COLUMN session_id TEXT NOT NULL DEFAULT '';
ALTER TABLE audit_entries ADD COLUMN network TEXT NOT NULL DEFAULT '';     -- the client's address, shortened
ALTER TABLE audit_entries ADD COLUMN request_id TEXT NOT NULL DEFAULT '';
ALTER TABLE audit_entries ADD COLUMN detail TEXT NOT NULL DEFAULT '';      -- JSON object of a security event

-- Changes are most entries and are not in it: a search for a kind is a search for events.
CREATE INDEX audit_entries_kind_idx ON audit_entries (kind, seq) WHERE kind IS NOT NULL;

-- How far each export of the trail has come.
CREATE TABLE audit_exports (
	target TEXT   NOT NULL PRIMARY KEY,
	seq    BIGINT NOT NULL, -- of the last entry that was handed over
	at     BIGINT NOT NULL
);

-- +goose Down
DROP TABLE audit_exports;
DROP INDEX audit_entries_kind_idx;
ALTER TABLE audit_entries DROP COLUMN detail;
ALTER TABLE audit_entries DROP COLUMN request_id;
ALTER TABLE audit_entries DROP COLUMN network;
ALTER TABLE audit_entries DROP COLUMN session_id;
ALTER TABLE audit_entries DROP COLUMN kind;
ALTER TABLE audit_entries DROP COLUMN form;
