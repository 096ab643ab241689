-- +goose Up

-- Service accounts: users that are programs. They have roles and grants like people, and tokens instead of sessions.
ALTER TABLE users ADD COLUMN kind TEXT NOT NULL DEFAULT 'person' CONSTRAINT users_kind_check CHECK (kind IN ('person', 'service'));
CREATE INDEX users_kind_idx ON users (kind, created_at, id);

DROP VIEW people;
-- Published by directory: users as other modules may know them.
CREATE VIEW people AS SELECT id, display_name, status, language, kind FROM users;

-- What a service account is for. Its name and status are those of the user with the same id.
CREATE TABLE service_accounts (
	id          TEXT   NOT NULL PRIMARY KEY REFERENCES users (id),
	description TEXT   NOT NULL,
	created_at  BIGINT NOT NULL,
	created_by  TEXT   NOT NULL,
	modified_at BIGINT NOT NULL,
	modified_by TEXT   NOT NULL,
	version     BIGINT NOT NULL DEFAULT 1
);
CREATE INDEX service_accounts_created_at_idx ON service_accounts (created_at, id);
CREATE INDEX service_accounts_modified_at_idx ON service_accounts (modified_at, id);

CREATE TABLE service_tokens (
	id           TEXT   NOT NULL PRIMARY KEY,
	account_id   TEXT   NOT NULL REFERENCES service_accounts (id),
	name         TEXT   NOT NULL,
	token_hash   TEXT   NOT NULL, -- keyed hash of the text, with the generation of the key
	scopes       TEXT   NOT NULL, -- names of endpoints, separated by commas; empty: all that the account may call
	networks     TEXT   NOT NULL, -- prefixes, separated by commas; empty: from everywhere
	created_at   BIGINT NOT NULL,
	created_by   TEXT   NOT NULL,
	expires_at   BIGINT NOT NULL,
	revoked_at   BIGINT,
	last_used_at BIGINT,
	warned_at    BIGINT, -- when administrators were notified that it expires soon
	version      BIGINT NOT NULL DEFAULT 1
);
CREATE INDEX service_tokens_account_id_idx ON service_tokens (account_id, created_at, id);
CREATE INDEX service_tokens_expires_at_idx ON service_tokens (expires_at, id);

-- +goose Down

DROP TABLE service_tokens;
DROP TABLE service_accounts;
DROP VIEW people;
-- Published by directory: users as other modules may know them.
CREATE VIEW people AS SELECT id, display_name, status, language FROM users;
DROP INDEX users_kind_idx;
ALTER TABLE users DROP COLUMN kind;
