-- +goose Up

-- The accounts at the operator's provider with which users may sign in. A subject is unique at its issuer and is never
-- reassigned (OpenID Connect Core 1.0, section 2).
CREATE TABLE identities (
	id           TEXT   NOT NULL PRIMARY KEY,
	user_id      TEXT   NOT NULL REFERENCES users (id),
	issuer       TEXT   NOT NULL,
	subject      TEXT   NOT NULL,
	email        TEXT   NOT NULL, -- at the time of linking; empty for none
	created_at   BIGINT NOT NULL,
	created_by   TEXT   NOT NULL,
	last_used_at BIGINT
);
CREATE UNIQUE INDEX identities_issuer_subject_idx ON identities (issuer, subject);
CREATE INDEX identities_user_id_idx ON identities (user_id, created_at, id);

-- Hashes of the states of sign-ins that have returned from the provider: each returns once.
CREATE TABLE oidc_states (
	state_hash TEXT   NOT NULL PRIMARY KEY,
	expires_at BIGINT NOT NULL
);
CREATE INDEX oidc_states_expires_at_idx ON oidc_states (expires_at);

-- One-time codes with which a browser completes a sign-in or a link. Codes and browsers are stored as hashes.
CREATE TABLE oidc_codes (
	code_hash    TEXT   NOT NULL PRIMARY KEY,
	browser_hash TEXT   NOT NULL,
	purpose      TEXT   NOT NULL, -- sign_in or link
	user_id      TEXT   NOT NULL REFERENCES users (id),
	data         TEXT   NOT NULL, -- what the provider has stated, as JSON
	expires_at   BIGINT NOT NULL
);
CREATE INDEX oidc_codes_expires_at_idx ON oidc_codes (expires_at);
CREATE INDEX oidc_codes_user_id_idx ON oidc_codes (user_id);

-- +goose Down

DROP TABLE oidc_codes;
DROP TABLE oidc_states;
DROP TABLE identities;
