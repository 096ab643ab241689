-- +goose Up

-- The record types that this database has seen. A new one gets the rights of the built-in roles once.
CREATE TABLE record_types (
	id         TEXT   NOT NULL PRIMARY KEY,
	name       TEXT   NOT NULL,
	created_at BIGINT NOT NULL,
	CONSTRAINT record_types_name_key UNIQUE (name)
);

-- The endpoints that this database has seen, as the running version describes them. A new one is granted to its
-- built-in roles once, so that a grant that an administrator took away stays away.
CREATE TABLE endpoints (
	endpoint   TEXT    NOT NULL PRIMARY KEY, -- GET /v1/customers/{id}
	name       TEXT    NOT NULL,
	method     TEXT    NOT NULL,
	path       TEXT    NOT NULL,
	tag        TEXT    NOT NULL,
	summary    TEXT    NOT NULL,
	access     TEXT    NOT NULL,
	rate_class TEXT    NOT NULL,
	active     BOOLEAN NOT NULL, -- served by the running version
	created_at BIGINT  NOT NULL
);
CREATE INDEX endpoints_path_idx ON endpoints (path, method);

-- What administrators see, make and remove. A row stands for one row of endpoint_grants, or for one row of grants for
-- each of its permissions; those are what rights are decided by.
CREATE TABLE grant_records (
	id          TEXT   NOT NULL PRIMARY KEY,
	role_id     TEXT   REFERENCES roles (id),
	user_id     TEXT,
	rec_type    TEXT,
	rec_id      TEXT,
	permissions TEXT   NOT NULL DEFAULT '', -- names with commas between them
	endpoint    TEXT,
	created_at  BIGINT NOT NULL,
	created_by  TEXT   NOT NULL,
	version     BIGINT NOT NULL DEFAULT 1,
	CONSTRAINT grant_records_principal_check CHECK ((role_id IS NULL) <> (user_id IS NULL)),
	CONSTRAINT grant_records_object_check CHECK ((rec_type IS NULL) <> (endpoint IS NULL))
);
CREATE INDEX grant_records_created_at_idx ON grant_records (created_at, id);
CREATE INDEX grant_records_role_id_idx ON grant_records (role_id, created_at, id);
CREATE INDEX grant_records_user_id_idx ON grant_records (user_id, created_at, id);
CREATE INDEX grant_records_rec_id_idx ON grant_records (rec_id, rec_type);
CREATE INDEX grant_records_rec_type_idx ON grant_records (rec_type, created_at, id);
CREATE INDEX roles_created_at_idx ON roles (created_at, id);

-- +goose Down
DROP INDEX roles_created_at_idx;
DROP TABLE grant_records;
DROP TABLE endpoints;
DROP TABLE record_types;
