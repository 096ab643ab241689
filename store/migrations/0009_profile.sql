-- +goose Up

-- What a user has chosen. NULL is the default of his language.
CREATE TABLE profile_preferences (
	user_id          TEXT   NOT NULL PRIMARY KEY REFERENCES users (id),
	theme            TEXT,
	date_format      TEXT,
	currency_display TEXT,
	number_format    TEXT,
	created_at       BIGINT NOT NULL,
	created_by       TEXT   NOT NULL,
	modified_at      BIGINT NOT NULL,
	modified_by      TEXT   NOT NULL,
	version          BIGINT NOT NULL DEFAULT 1
);

-- The pictures of users as they are served, small enough to live here: so a backup has them, and a picture and what
-- points to it can never part.
CREATE TABLE avatars (
	user_id    TEXT   NOT NULL REFERENCES users (id),
	pixels     BIGINT NOT NULL, -- width and height
	token      TEXT   NOT NULL, -- of its address, random
	media_type TEXT   NOT NULL,
	content    BYTEA  NOT NULL,
	created_at BIGINT NOT NULL,
	created_by TEXT   NOT NULL,
	PRIMARY KEY (user_id, pixels),
	CONSTRAINT avatars_token_key UNIQUE (token),
	CONSTRAINT avatars_media_type_check CHECK (media_type IN ('image/jpeg', 'image/png'))
);

-- +goose Down
DROP TABLE avatars;
DROP TABLE profile_preferences;
