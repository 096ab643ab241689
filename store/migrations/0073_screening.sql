-- +goose Up

-- Lists with names of sanctioned people and organisations, as they are in force.
CREATE TABLE screening_lists (
	id         TEXT   NOT NULL PRIMARY KEY,
	name       TEXT   NOT NULL,
	name_key   TEXT   NOT NULL,
	format     TEXT   NOT NULL,
	version    TEXT   NOT NULL, -- as in the file
	entries    BIGINT NOT NULL,
	size       BIGINT NOT NULL, -- of the file, in bytes
	sha256     TEXT   NOT NULL, -- of the file
	added      BIGINT NOT NULL, -- by the last load
	changed    BIGINT NOT NULL,
	removed    BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	created_by TEXT   NOT NULL,
	loaded_at  BIGINT NOT NULL,
	loaded_by  TEXT   NOT NULL,
	load       BIGINT NOT NULL -- the load that is in force
);
CREATE UNIQUE INDEX screening_lists_name_key_idx ON screening_lists (name_key);
CREATE INDEX screening_lists_created_at_idx ON screening_lists (created_at, id);

-- The newest load of each list, which may still be running. A load that has begun later replaces it.
CREATE TABLE screening_loads (
	list_id  TEXT   NOT NULL PRIMARY KEY,
	name_key TEXT   NOT NULL,
	load     BIGINT NOT NULL,
	batches  BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX screening_loads_name_key_idx ON screening_loads (name_key);

-- The entries of lists. One is in force if from_load has been reached and to_load has not. So a load takes effect in one step, and
-- writes only what it changes.
CREATE TABLE screening_entries (
	id        TEXT   NOT NULL,
	list_id   TEXT   NOT NULL,
	entry_key TEXT   NOT NULL, -- the id in the file; a repeated one has a number
	content   TEXT   NOT NULL, -- JSON
	from_load BIGINT NOT NULL,
	to_load   BIGINT,          -- NULL: it is in the newest load
	PRIMARY KEY (id, from_load)
);
CREATE UNIQUE INDEX screening_entries_entry_key_idx ON screening_entries (list_id, entry_key, from_load);
CREATE INDEX screening_entries_from_load_idx ON screening_entries (list_id, from_load);
CREATE INDEX screening_entries_to_load_idx ON screening_entries (list_id, to_load);

-- +goose Down

DROP TABLE screening_entries;
DROP TABLE screening_loads;
DROP TABLE screening_lists;
