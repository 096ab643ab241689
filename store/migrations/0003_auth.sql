-- +goose Up

-- The hash of each user's password, as a PHC string with its parameters.
CREATE TABLE passwords (
	user_id    TEXT   NOT NULL PRIMARY KEY REFERENCES users (id),
	hash       TEXT   NOT NULL,
	changed_at BIGINT NOT NULL
);

-- A session is active until it has ended or expires. This table is the truth; caches only save reading it.
CREATE TABLE sessions (
	id           TEXT   NOT NULL PRIMARY KEY,
	user_id      TEXT   NOT NULL REFERENCES users (id),
	device_id    TEXT   NOT NULL, -- X-Device-ID, empty when the client sent none
	created_at   BIGINT NOT NULL,
	last_used_at BIGINT NOT NULL, -- sign-in or latest refresh
	expires_at   BIGINT NOT NULL, -- when the last of its tokens expires
	ended_at     BIGINT,
	end_reason   TEXT   NOT NULL DEFAULT ''
);
CREATE INDEX sessions_user_id_idx ON sessions (user_id, created_at, id);
CREATE INDEX sessions_expires_at_idx ON sessions (expires_at, id);

-- Every refresh token of a session that may still be known to somebody, the used ones too: showing one of those again
-- ends the session.
CREATE TABLE refresh_tokens (
	token_hash TEXT   NOT NULL PRIMARY KEY, -- SHA-256, hexadecimal
	session_id TEXT   NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	expires_at BIGINT NOT NULL,
	used_at    BIGINT
);
CREATE INDEX refresh_tokens_session_id_idx ON refresh_tokens (session_id);

-- The devices from which a user has signed in, to recognise a new one.
CREATE TABLE devices (
	user_id      TEXT   NOT NULL REFERENCES users (id),
	device_id    TEXT   NOT NULL,
	first_use_at BIGINT NOT NULL,
	last_use_at  BIGINT NOT NULL,
	PRIMARY KEY (user_id, device_id)
);
CREATE INDEX devices_last_use_at_idx ON devices (last_use_at);

-- Failed attempts to sign in, by credential value and network and by value alone. The subject is a keyed hash, so that
-- neither values nor addresses can be read here, and values that nobody has look like all others.
CREATE TABLE sign_in_failures (
	subject       TEXT    NOT NULL PRIMARY KEY,
	failures      INTEGER NOT NULL,
	last_at       BIGINT  NOT NULL,
	blocked_until BIGINT  NOT NULL
);
CREATE INDEX sign_in_failures_last_at_idx ON sign_in_failures (last_at);

-- The different values that failed from one network lately.
CREATE TABLE sign_in_values (
	network TEXT   NOT NULL, -- keyed hash
	subject TEXT   NOT NULL, -- keyed hash of the value
	at      BIGINT NOT NULL,
	PRIMARY KEY (network, subject)
);
CREATE INDEX sign_in_values_network_idx ON sign_in_values (network, at);
CREATE INDEX sign_in_values_at_idx ON sign_in_values (at);

CREATE TABLE api_keys (
	id           TEXT   NOT NULL PRIMARY KEY,
	name         TEXT   NOT NULL,
	key_hash     TEXT   NOT NULL, -- keyed SHA-256 of the whole key, hexadecimal
	created_at   BIGINT NOT NULL,
	created_by   TEXT   NOT NULL,
	last_used_at BIGINT,
	revoked_at   BIGINT,
	version      BIGINT NOT NULL DEFAULT 1,
	CONSTRAINT api_keys_key_hash_key UNIQUE (key_hash)
);
CREATE INDEX api_keys_created_at_idx ON api_keys (created_at, id);

-- +goose Down
DROP TABLE api_keys;
DROP TABLE sign_in_values;
DROP TABLE sign_in_failures;
DROP TABLE devices;
DROP TABLE refresh_tokens;
DROP TABLE sessions;
DROP TABLE passwords;
