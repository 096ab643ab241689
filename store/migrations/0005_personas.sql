-- +goose Up
CREATE TABLE personas (
	id             TEXT    NOT NULL PRIMARY KEY,
	first_name     TEXT    NOT NULL,
	first_name_key TEXT    NOT NULL,
	last_name      TEXT    NOT NULL,
	last_name_key  TEXT    NOT NULL,
	date_of_birth  TEXT    NOT NULL,
	date_of_death  TEXT,
	nationality    TEXT,
	hash_id        TEXT,
	active         BOOLEAN NOT NULL,
	metadata       TEXT    NOT NULL,
	created_at     BIGINT  NOT NULL,
	created_by     TEXT    NOT NULL,
	modified_at    BIGINT  NOT NULL,
	modified_by    TEXT    NOT NULL,
	version        BIGINT  NOT NULL DEFAULT 1,
	CONSTRAINT personas_dates_check CHECK (date_of_death >= date_of_birth)
);

CREATE INDEX personas_created_idx ON personas (created_at, id);
CREATE INDEX personas_owner_idx ON personas (created_by, created_at, id);
CREATE INDEX personas_active_idx ON personas (active, created_at, id);
CREATE INDEX personas_last_name_idx ON personas (last_name_key, id);
CREATE INDEX personas_hash_idx ON personas (hash_id);

-- Whose identity a persona is.
CREATE TABLE persona_users (
	id         TEXT   NOT NULL PRIMARY KEY,
	persona_id TEXT   NOT NULL REFERENCES personas (id),
	user_id    TEXT   NOT NULL REFERENCES users (id),
	created_at BIGINT NOT NULL,
	created_by TEXT   NOT NULL,
	version    BIGINT NOT NULL DEFAULT 1,
	CONSTRAINT persona_users_persona_id_user_id_key UNIQUE (persona_id, user_id)
);

CREATE INDEX persona_users_user_idx ON persona_users (user_id, persona_id);
CREATE INDEX persona_users_persona_idx ON persona_users (persona_id, created_at, id);

-- What linked_persona_id is to persona_id.
CREATE TABLE persona_links (
	id                TEXT   NOT NULL PRIMARY KEY,
	persona_id        TEXT   NOT NULL REFERENCES personas (id),
	linked_persona_id TEXT   NOT NULL REFERENCES personas (id),
	relation          TEXT   NOT NULL,
	created_at        BIGINT NOT NULL,
	created_by        TEXT   NOT NULL,
	version           BIGINT NOT NULL DEFAULT 1,
	CONSTRAINT persona_links_relation_check CHECK (
		relation = 'spouse' OR relation = 'parent' OR relation = 'child' OR relation = 'guardian' OR
		relation = 'legal_representative' OR relation = 'beneficial_owner' OR
		relation = 'authorised_signatory' OR relation = 'other'),
	CONSTRAINT persona_links_ends_check CHECK (persona_id <> linked_persona_id),
	CONSTRAINT persona_links_persona_id_linked_persona_id_relation_key UNIQUE (persona_id, linked_persona_id, relation)
);

CREATE INDEX persona_links_persona_idx ON persona_links (persona_id, created_at, id);
CREATE INDEX persona_links_linked_idx ON persona_links (linked_persona_id, created_at, id);

-- +goose Down
DROP TABLE persona_links;
DROP TABLE persona_users;
DROP TABLE personas;
