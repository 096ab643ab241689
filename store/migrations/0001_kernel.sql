-- +goose Up

-- Here and in all that follows, a CHECK over more than two values is written with OR: for a longer IN, SQLite makes a
-- table of the values at every write.

-- Facts about the database itself: the check value of the master key, the signed end of the audit trail.
CREATE TABLE meta (
	name  TEXT NOT NULL PRIMARY KEY,
	value TEXT NOT NULL
);

-- Who did what to which record. Each row carries the hash of the one before; rows are only appended. INTEGER, not BIGINT,
-- is the row number itself on SQLite, which saves each write an index.
CREATE TABLE audit_entries (
	seq         INTEGER NOT NULL PRIMARY KEY,
	at          BIGINT NOT NULL,
	actor       TEXT   NOT NULL,
	action      TEXT   NOT NULL,
	rec_type    TEXT   NOT NULL,
	rec_id      TEXT   NOT NULL,
	before_hash TEXT   NOT NULL,
	after_hash  TEXT   NOT NULL,
	prev_hash   TEXT   NOT NULL,
	hash        TEXT   NOT NULL
);
CREATE INDEX audit_entries_rec_id_idx ON audit_entries (rec_id, seq);
CREATE INDEX audit_entries_actor_idx ON audit_entries (actor, seq);

-- What a request with an Idempotency-Key was answered. The body is sealed.
CREATE TABLE idempotency_keys (
	caller     TEXT    NOT NULL,
	path       TEXT    NOT NULL,
	key        TEXT    NOT NULL,
	body_hash  TEXT    NOT NULL,
	status     INTEGER NOT NULL,
	body       TEXT    NOT NULL,
	created_at BIGINT  NOT NULL,
	expires_at BIGINT  NOT NULL,
	PRIMARY KEY (caller, path, key)
);
CREATE INDEX idempotency_keys_expires_at_idx ON idempotency_keys (expires_at);

CREATE TABLE roles (
	id          TEXT    NOT NULL PRIMARY KEY,
	name        TEXT    NOT NULL,
	name_key    TEXT    NOT NULL, -- the name in lower case
	description TEXT    NOT NULL DEFAULT '',
	builtin     BOOLEAN NOT NULL DEFAULT FALSE,
	created_at  BIGINT  NOT NULL,
	created_by  TEXT    NOT NULL,
	modified_at BIGINT  NOT NULL,
	modified_by TEXT    NOT NULL,
	version     BIGINT  NOT NULL DEFAULT 1,
	CONSTRAINT roles_name_check CHECK (name <> ''),
	CONSTRAINT roles_name_key UNIQUE (name_key)
);

CREATE TABLE user_roles (
	user_id    TEXT   NOT NULL,
	role_id    TEXT   NOT NULL REFERENCES roles (id),
	created_at BIGINT NOT NULL,
	created_by TEXT   NOT NULL,
	PRIMARY KEY (user_id, role_id)
);
CREATE INDEX user_roles_role_id_idx ON user_roles (role_id, user_id);

-- A permission of a user or a role on a record type, or on one record of it.
CREATE TABLE grants (
	id             TEXT   NOT NULL PRIMARY KEY,
	principal_kind TEXT   NOT NULL,
	principal_id   TEXT   NOT NULL,
	rec_type       TEXT   NOT NULL,
	permission     TEXT   NOT NULL,
	rec_id         TEXT   NOT NULL DEFAULT '', -- empty: the type as a whole
	created_at     BIGINT NOT NULL,
	created_by     TEXT   NOT NULL,
	version        BIGINT NOT NULL DEFAULT 1,
	CONSTRAINT grants_principal_kind_check CHECK (principal_kind IN ('user', 'role')),
	CONSTRAINT grants_permission_check CHECK (
		permission = 'create' OR permission = 'read' OR permission = 'update' OR
		permission = 'delete' OR permission = 'read_all'),
	-- In this order it also answers who may do what with one record.
	CONSTRAINT grants_rec_id_key UNIQUE (rec_id, rec_type, permission, principal_id)
);
-- Which records may this user or role read?
CREATE INDEX grants_principal_id_idx ON grants (principal_id, rec_type, permission, rec_id);

-- The right of a user or a role to call an endpoint.
CREATE TABLE endpoint_grants (
	id             TEXT   NOT NULL PRIMARY KEY,
	principal_kind TEXT   NOT NULL,
	principal_id   TEXT   NOT NULL,
	endpoint       TEXT   NOT NULL,
	created_at     BIGINT NOT NULL,
	created_by     TEXT   NOT NULL,
	version        BIGINT NOT NULL DEFAULT 1,
	CONSTRAINT endpoint_grants_principal_kind_check CHECK (principal_kind IN ('user', 'role')),
	CONSTRAINT endpoint_grants_principal_id_key UNIQUE (principal_id, endpoint)
);
CREATE INDEX endpoint_grants_endpoint_idx ON endpoint_grants (endpoint);

CREATE TABLE rate_limit_rules (
	endpoint    TEXT    NOT NULL PRIMARY KEY,
	per_minute  INTEGER NOT NULL,
	modified_at BIGINT  NOT NULL,
	modified_by TEXT    NOT NULL,
	version     BIGINT  NOT NULL DEFAULT 1,
	CONSTRAINT rate_limit_rules_per_minute_check CHECK (per_minute > 0)
);

-- +goose Down
DROP TABLE rate_limit_rules;
DROP TABLE endpoint_grants;
DROP TABLE grants;
DROP TABLE user_roles;
DROP TABLE roles;
DROP TABLE idempotency_keys;
DROP TABLE audit_entries;
DROP TABLE meta;
