-- +goose Up

-- The second factors of users. A passkey has a credential_id once it is confirmed, an authenticator app a sealed secret. The
-- last two columns belong to an enrolment that is not confirmed yet.
CREATE TABLE factors (
	id              TEXT    NOT NULL PRIMARY KEY,
	user_id         TEXT    NOT NULL REFERENCES users (id),
	type            TEXT    NOT NULL,
	name            TEXT    NOT NULL,
	name_key        TEXT    NOT NULL,
	status          TEXT    NOT NULL,
	created_at      BIGINT  NOT NULL,
	created_by      TEXT    NOT NULL,
	last_used_at    BIGINT,
	version         BIGINT  NOT NULL DEFAULT 1,
	credential_id   TEXT,
	public_key      TEXT    NOT NULL DEFAULT '',
	transports      TEXT    NOT NULL DEFAULT '',
	aaguid          TEXT    NOT NULL DEFAULT '',
	backup_eligible BOOLEAN NOT NULL DEFAULT FALSE,
	backed_up       BOOLEAN NOT NULL DEFAULT FALSE,
	sign_count      BIGINT  NOT NULL DEFAULT 0,
	secret_sealed   TEXT    NOT NULL DEFAULT '',
	last_step       BIGINT  NOT NULL DEFAULT 0,
	session_id      TEXT    NOT NULL DEFAULT '',
	attempts        BIGINT  NOT NULL DEFAULT 0,
	CONSTRAINT factors_type_check CHECK (type = 'passkey' OR type = 'totp' OR type = 'recovery_codes'),
	CONSTRAINT factors_status_check CHECK (status = 'pending' OR status = 'active'),
	CONSTRAINT factors_user_id_name_key_key UNIQUE (user_id, name_key),
	CONSTRAINT factors_credential_id_key UNIQUE (credential_id)
);

CREATE INDEX factors_created_idx ON factors (created_at, id);
CREATE INDEX factors_user_idx ON factors (user_id, created_at, id);
CREATE INDEX factors_status_idx ON factors (status, created_at, id);

-- The codes that stand in for a lost factor. The hash is keyed and covers the factor, so that it cannot be copied to another.
CREATE TABLE recovery_codes (
	factor_id TEXT   NOT NULL REFERENCES factors (id),
	code_hash TEXT   NOT NULL,
	used_at   BIGINT,
	PRIMARY KEY (factor_id, code_hash)
);

-- +goose Down

DROP TABLE recovery_codes;
DROP TABLE factors;
