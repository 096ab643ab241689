-- +goose Up

-- The keys that sign access tokens, Ed25519. The newest one signs. A retired one verifies tokens for as long as one is valid,
-- and is deleted then. The public key is not stored: it follows from the sealed private one, so that nobody can add a key
-- without the master key.
CREATE TABLE signing_keys (
	kid            TEXT   NOT NULL PRIMARY KEY, -- SHA-256 thumbprint of the public key (RFC 7638)
	number         BIGINT NOT NULL,             -- 1 for the first key of the database
	private_sealed TEXT   NOT NULL,
	created_at     BIGINT NOT NULL,
	activated_at   BIGINT NOT NULL,
	retired_at     BIGINT,
	CONSTRAINT signing_keys_number_key UNIQUE (number)
);

-- +goose Down
DROP TABLE signing_keys;
