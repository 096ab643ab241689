-- +goose Up

-- Until when a method of sign-in is on trial. Those that exist are not.
ALTER TABLE factors ADD COLUMN trusted_from BIGINT NOT NULL DEFAULT 0;
ALTER TABLE identities ADD COLUMN trusted_from BIGINT NOT NULL DEFAULT 0;

-- The session that added a credential; empty for a registration and for other users. Only it validates the credential without
-- another proof.
ALTER TABLE credentials ADD COLUMN session_id TEXT NOT NULL DEFAULT '';

-- Links that remove a new method again, by the keyed hash of their token.
CREATE TABLE sign_in_undos (
	id         TEXT   NOT NULL PRIMARY KEY,
	user_id    TEXT   NOT NULL,
	kind       TEXT   NOT NULL,
	method_id  TEXT   NOT NULL,
	created_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL
);
CREATE INDEX sign_in_undos_method_id_idx ON sign_in_undos (method_id);
CREATE INDEX sign_in_undos_expires_at_idx ON sign_in_undos (expires_at);

-- +goose Down

DROP TABLE sign_in_undos;
ALTER TABLE credentials DROP COLUMN session_id;
ALTER TABLE identities DROP COLUMN trusted_from;
ALTER TABLE factors DROP COLUMN trusted_from;
