-- +goose Up

-- Record types of other applications. Kontor decides about their records and does not have them.
ALTER TABLE record_types ADD COLUMN description TEXT NOT NULL DEFAULT '';
ALTER TABLE record_types ADD COLUMN permissions TEXT NOT NULL DEFAULT ''; -- of another application: names with commas between them; empty: a type of Kontor
ALTER TABLE record_types ADD COLUMN created_by TEXT NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000';

-- A permission of a user or a role on records of another application.
CREATE TABLE external_grants (
	id             TEXT   NOT NULL PRIMARY KEY,
	principal_kind TEXT   NOT NULL,
	principal_id   TEXT   NOT NULL,
	rec_type       TEXT   NOT NULL,
	permission     TEXT   NOT NULL,
	rec_id         TEXT   NOT NULL, -- empty: the type as a whole
	created_at     BIGINT NOT NULL,
	created_by     TEXT   NOT NULL,
	CONSTRAINT external_grants_principal_kind_check CHECK (principal_kind = 'user' OR principal_kind = 'role'),
	-- In this order it also answers who may do what with one record.
	CONSTRAINT external_grants_rec_type_key UNIQUE (rec_type, rec_id, permission, principal_id)
);
-- With which records may this user or role do something?
CREATE INDEX external_grants_principal_id_idx ON external_grants (principal_id, rec_type, permission, rec_id);

-- +goose Down

DROP TABLE external_grants;
ALTER TABLE record_types DROP COLUMN created_by;
ALTER TABLE record_types DROP COLUMN permissions;
ALTER TABLE record_types DROP COLUMN description;
