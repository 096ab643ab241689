-- +goose Up

-- The networks from which a user has signed in lately. The subject is a keyed hash of user and network.
CREATE TABLE known_networks (
	subject         TEXT   NOT NULL PRIMARY KEY,
	user_id         TEXT   NOT NULL REFERENCES users (id),
	last_success_at BIGINT NOT NULL
);
CREATE INDEX known_networks_user_id_idx ON known_networks (user_id);
CREATE INDEX known_networks_last_success_at_idx ON known_networks (last_success_at);

-- The devices that hold a token which gives them an attempt budget of their own. The token itself is not stored: it is
-- signed, and only the one with the current rotation is good.
CREATE TABLE device_tokens (
	id          TEXT   NOT NULL PRIMARY KEY,
	user_id     TEXT   NOT NULL REFERENCES users (id),
	session_id  TEXT   NOT NULL, -- the latest session opened with it
	rotation    BIGINT NOT NULL,
	last_use_at BIGINT NOT NULL,
	expires_at  BIGINT NOT NULL
);
CREATE INDEX device_tokens_user_id_idx ON device_tokens (user_id, last_use_at, id);
CREATE INDEX device_tokens_session_id_idx ON device_tokens (session_id);
CREATE INDEX device_tokens_expires_at_idx ON device_tokens (expires_at);

-- +goose Down
DROP TABLE device_tokens;
DROP TABLE known_networks;
