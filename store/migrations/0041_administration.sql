-- +goose Up

-- The changed fields of audit entries, sealed. The entry holds a keyed digest of them in its detail, so that a change of a row
-- is detected, and a row can be deleted without a change of the chain.
CREATE TABLE audit_values (
	seq    INTEGER NOT NULL PRIMARY KEY, -- of the entry
	sealed TEXT    NOT NULL
);

-- Invitations that were neither accepted nor withdrawn. The link holds the id and a secret, of which only a keyed digest over
-- the whole row is stored.
CREATE TABLE invitations (
	id           TEXT   NOT NULL PRIMARY KEY,
	email        TEXT   NOT NULL,
	email_key    TEXT   NOT NULL,
	display_name TEXT   NOT NULL,
	language     TEXT   NOT NULL,
	roles        TEXT   NOT NULL, -- ids, separated by commas
	digest       TEXT   NOT NULL,
	expires_at   BIGINT NOT NULL,
	sent_at      BIGINT NOT NULL,
	created_at   BIGINT NOT NULL,
	created_by   TEXT   NOT NULL
);
CREATE INDEX invitations_created_at_idx ON invitations (created_at, id);
CREATE INDEX invitations_created_by_idx ON invitations (created_by, created_at, id);
CREATE INDEX invitations_email_key_idx ON invitations (email_key);
CREATE INDEX invitations_expires_at_idx ON invitations (expires_at);

-- +goose Down
DROP TABLE invitations;
DROP TABLE audit_values;
