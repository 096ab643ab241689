-- +goose Up

-- What a sign-in name looks like (UTS #39), so that nobody chooses a display name that resembles the sign-in name of a
-- staff member. The next start fills it for the credentials that exist.
ALTER TABLE credentials ADD COLUMN value_skeleton TEXT NOT NULL DEFAULT '';
CREATE INDEX credentials_value_skeleton_idx ON credentials (value_skeleton);

-- +goose Down

DROP INDEX credentials_value_skeleton_idx;
ALTER TABLE credentials DROP COLUMN value_skeleton;
