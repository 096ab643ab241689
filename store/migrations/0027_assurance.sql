-- +goose Up

-- How a session was authenticated: methods of RFC 8176, joined by spaces, and when a second factor or a passkey was last
-- verified. Sessions from before had a password only.
ALTER TABLE sessions ADD COLUMN amr TEXT NOT NULL DEFAULT 'pwd';
ALTER TABLE sessions ADD COLUMN factor_at BIGINT;

-- The open steps of sign-ins, step-ups and enrolments. The id is the hash of a token.
CREATE TABLE auth_challenges (
	id         TEXT    NOT NULL PRIMARY KEY,
	purpose    TEXT    NOT NULL,
	user_id    TEXT    NOT NULL, -- empty: a passkey will name the user
	session_id TEXT    NOT NULL, -- empty: a sign-in
	device     TEXT    NOT NULL, -- keyed hash of the device that began
	data       TEXT    NOT NULL, -- sealed
	attempts   INTEGER NOT NULL DEFAULT 0,
	created_at BIGINT  NOT NULL,
	expires_at BIGINT  NOT NULL,
	used_at    BIGINT,
	CONSTRAINT auth_challenges_purpose_check CHECK (purpose = 'sign_in' OR purpose = 'step_up' OR purpose = 'enrol')
);
CREATE INDEX auth_challenges_user_id_idx ON auth_challenges (user_id, session_id);
CREATE INDEX auth_challenges_expires_at_idx ON auth_challenges (expires_at);

-- Since when users without a second factor have had a role that requires one.
CREATE TABLE factor_duties (
	user_id TEXT   NOT NULL PRIMARY KEY,
	since   BIGINT NOT NULL
);

-- How recently callers of an endpoint must have authenticated.
ALTER TABLE endpoints ADD COLUMN assurance TEXT NOT NULL DEFAULT 'any';

-- +goose Down

ALTER TABLE endpoints DROP COLUMN assurance;
DROP TABLE factor_duties;
DROP TABLE auth_challenges;
ALTER TABLE sessions DROP COLUMN factor_at;
ALTER TABLE sessions DROP COLUMN amr;
