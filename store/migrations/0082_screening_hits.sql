-- +goose Up

-- Records whose names are like those of entries of sanctions lists. There is one hit for a record and an entry.
CREATE TABLE screening_hits (
	id               TEXT   NOT NULL PRIMARY KEY,
	status           TEXT   NOT NULL CHECK (status IN ('open', 'pending', 'dismissed', 'confirmed', 'closed')),
	settled          TEXT   NOT NULL, -- the status that the hit has without the pending decision
	score            TEXT   NOT NULL, -- three decimals, so that texts are in the order of the numbers
	list             TEXT   NOT NULL,
	list_key         TEXT   NOT NULL,
	entry_id         TEXT   NOT NULL,
	source_id        TEXT   NOT NULL,
	entry_name       TEXT   NOT NULL,
	entry_name_key   TEXT   NOT NULL,
	entry_state      TEXT   NOT NULL, -- digest of the entry as it was compared
	subject_type     TEXT   NOT NULL CHECK (subject_type IN ('customer', 'persona', 'payer')),
	subject_id       TEXT   NOT NULL,
	subject_name     TEXT   NOT NULL,
	subject_name_key TEXT   NOT NULL,
	subject_state    TEXT   NOT NULL, -- digest of the identity as it was compared
	customer_id      TEXT,            -- the customer itself, or that of a payer
	evidence         TEXT   NOT NULL, -- JSON
	decision         TEXT   NOT NULL,
	reason           TEXT   NOT NULL,
	proposed_at      BIGINT,
	proposed_by      TEXT,
	decided_at       BIGINT,
	decided_by       TEXT,
	created_at       BIGINT NOT NULL,
	updated_at       BIGINT NOT NULL,
	version          BIGINT NOT NULL
);
CREATE UNIQUE INDEX screening_hits_subject_idx ON screening_hits (subject_type, subject_id, entry_id);
CREATE INDEX screening_hits_customer_idx ON screening_hits (customer_id, id);
CREATE INDEX screening_hits_created_idx ON screening_hits (created_at, id);
CREATE INDEX screening_hits_status_idx ON screening_hits (status, created_at, id);

-- The history of hits.
CREATE TABLE screening_hit_changes (
	id         TEXT   NOT NULL PRIMARY KEY,
	hit_id     TEXT   NOT NULL REFERENCES screening_hits (id),
	action     TEXT   NOT NULL,
	status     TEXT   NOT NULL, -- after the change
	decision   TEXT   NOT NULL,
	reason     TEXT   NOT NULL,
	changed_at BIGINT NOT NULL,
	changed_by TEXT   NOT NULL
);
CREATE INDEX screening_hit_changes_hit_idx ON screening_hit_changes (hit_id, id);

-- How far records were compared with the lists: changes of records up to an audit entry, and all records after the lists have changed.
-- There is at most one row, and none before a list is loaded.
CREATE TABLE screening_progress (
	id       TEXT   NOT NULL PRIMARY KEY,
	seq      BIGINT NOT NULL, -- of the last audit entry that was followed
	lists    TEXT   NOT NULL, -- the lists that all records are being compared with, or were
	source   TEXT   NOT NULL, -- of the records that are next; empty: all were compared
	position TEXT   NOT NULL, -- the id of the last record
	step     BIGINT NOT NULL  -- grows with each change of the row
);

-- Published by customers: whom to compare with lists. Texts are empty for what is not known.
CREATE VIEW customer_subjects AS
SELECT id, id AS customer_id, CASE WHEN type = 'business' THEN '' ELSE TRIM(first_name || ' ' || last_name) END AS name,
	CASE WHEN type = 'business' THEN TRIM(first_name || ' ' || last_name) ELSE '' END AS company,
	COALESCE(date_of_birth, '') AS birth, COALESCE(nationality, '') AS nationality, country
FROM customers WHERE erased_at IS NULL;

-- Published by personas: the same of personas.
CREATE VIEW persona_subjects AS
SELECT id, '' AS customer_id, TRIM(first_name || ' ' || last_name) AS name, '' AS company,
	date_of_birth AS birth, COALESCE(nationality, '') AS nationality, '' AS country
FROM personas WHERE erased_at IS NULL;

-- Published by payers: the same of active payers.
CREATE VIEW payer_subjects AS
SELECT id, customer_id, COALESCE(name, '') AS name, COALESCE(company, '') AS company,
	'' AS birth, '' AS nationality, COALESCE(country, '') AS country
FROM payers WHERE erased_at IS NULL AND active = TRUE;

-- +goose Down

DROP VIEW payer_subjects;
DROP VIEW persona_subjects;
DROP VIEW customer_subjects;
DROP TABLE screening_progress;
DROP TABLE screening_hit_changes;
DROP TABLE screening_hits;
