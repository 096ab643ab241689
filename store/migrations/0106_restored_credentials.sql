-- +goose Up

-- The credential that the link restores, as JSON; empty for links that remove a new method.
ALTER TABLE sign_in_undos ADD COLUMN removed TEXT NOT NULL DEFAULT '';

-- +goose Down

ALTER TABLE sign_in_undos DROP COLUMN removed;
