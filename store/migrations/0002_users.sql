-- +goose Up

CREATE TABLE users (
	id            TEXT   NOT NULL PRIMARY KEY,
	status        TEXT   NOT NULL,
	language      TEXT   NOT NULL,
	created_at    BIGINT NOT NULL,
	created_by    TEXT   NOT NULL,
	modified_at   BIGINT NOT NULL,
	modified_by   TEXT   NOT NULL,
	last_login_at BIGINT,
	version       BIGINT NOT NULL DEFAULT 1,
	CONSTRAINT users_status_check CHECK (status = 'pending' OR status = 'active' OR status = 'disabled'),
	CONSTRAINT users_language_check CHECK (language = 'en' OR language = 'de' OR language = 'fr' OR language = 'it')
);
CREATE INDEX users_created_at_idx ON users (created_at, id);
CREATE INDEX users_status_idx ON users (status, created_at, id);
CREATE INDEX users_language_idx ON users (language, created_at, id);
CREATE INDEX users_modified_at_idx ON users (modified_at, id);
CREATE INDEX users_last_login_at_idx ON users (last_login_at, id);

-- What a user signs in with. A value belongs to one user at a time, whatever its type: the key of an
-- e-mail address has an @, that of a phone number begins with a plus sign, a user name begins with a letter.
CREATE TABLE credentials (
	id           TEXT    NOT NULL PRIMARY KEY,
	user_id      TEXT    NOT NULL REFERENCES users (id),
	type         TEXT    NOT NULL,
	value        TEXT    NOT NULL,
	value_key    TEXT    NOT NULL, -- the value as it is compared
	validated    BOOLEAN NOT NULL DEFAULT FALSE,
	validated_at BIGINT,
	created_at   BIGINT  NOT NULL,
	created_by   TEXT    NOT NULL,
	version      BIGINT  NOT NULL DEFAULT 1,
	CONSTRAINT credentials_type_check CHECK (type = 'email' OR type = 'phone' OR type = 'username'),
	CONSTRAINT credentials_validated_check CHECK (validated = (validated_at IS NOT NULL)),
	CONSTRAINT credentials_value_key_key UNIQUE (value_key)
);
CREATE INDEX credentials_user_id_idx ON credentials (user_id, created_at, id);

-- The one live code of a credential.
CREATE TABLE otps (
	credential_id TEXT    NOT NULL PRIMARY KEY REFERENCES credentials (id),
	purpose       TEXT    NOT NULL,
	code_hash     TEXT    NOT NULL, -- keyed hash over purpose, credential and code
	attempts      INTEGER NOT NULL DEFAULT 0,
	consumed      BOOLEAN NOT NULL DEFAULT FALSE,
	expires_at    BIGINT  NOT NULL,
	created_at    BIGINT  NOT NULL,
	CONSTRAINT otps_purpose_check CHECK (purpose IN ('validation', 'recovery'))
);

-- When codes were asked for, by target, also for targets that do not exist. Rows are dropped after the window.
CREATE TABLE otp_sends (
	id      TEXT   NOT NULL PRIMARY KEY,
	target  TEXT   NOT NULL, -- keyed hash of the credential's key
	sent_at BIGINT NOT NULL
);
CREATE INDEX otp_sends_target_idx ON otp_sends (target, sent_at);
CREATE INDEX otp_sends_sent_at_idx ON otp_sends (sent_at);

-- The transactional outbox: what leaves by e-mail or SMS, written with the change it tells of.
CREATE TABLE deliveries (
	id              TEXT    NOT NULL PRIMARY KEY,
	notification_id TEXT,
	user_id         TEXT    NOT NULL,
	channel         TEXT    NOT NULL,
	recipient       TEXT    NOT NULL,
	recipient_key   TEXT    NOT NULL, -- folded, for searches
	subject         TEXT    NOT NULL DEFAULT '',
	text            TEXT    NOT NULL DEFAULT '',
	html            TEXT    NOT NULL DEFAULT '',
	secret          BOOLEAN NOT NULL DEFAULT FALSE, -- to be blanked once a gateway has it
	status          TEXT    NOT NULL,
	attempts        INTEGER NOT NULL DEFAULT 0,
	last_error      TEXT,
	next_attempt_at BIGINT,
	lease_until     BIGINT,
	leased_by       TEXT,
	created_at      BIGINT  NOT NULL,
	sent_at         BIGINT,
	version         BIGINT  NOT NULL DEFAULT 1,
	CONSTRAINT deliveries_channel_check CHECK (channel IN ('email', 'sms')),
	CONSTRAINT deliveries_status_check CHECK (
		status = 'queued' OR status = 'sending' OR status = 'sent' OR status = 'retrying' OR
		status = 'dead')
);
CREATE INDEX deliveries_created_at_idx ON deliveries (created_at, id);
CREATE INDEX deliveries_user_id_idx ON deliveries (user_id, created_at, id);
CREATE INDEX deliveries_recipient_key_idx ON deliveries (recipient_key, created_at, id);
CREATE INDEX deliveries_notification_id_idx ON deliveries (notification_id);
-- What is due: waiting jobs by the time of their next attempt.
CREATE INDEX deliveries_status_idx ON deliveries (status, next_attempt_at, id);
CREATE INDEX deliveries_lease_until_idx ON deliveries (status, lease_until);

-- +goose Down
DROP TABLE deliveries;
DROP TABLE otp_sends;
DROP TABLE otps;
DROP TABLE credentials;
DROP TABLE users;
