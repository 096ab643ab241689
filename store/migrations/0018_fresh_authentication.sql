-- +goose Up

-- When the password of the session's user was last shown within it. A refresh leaves it as it is.
ALTER TABLE sessions ADD COLUMN authenticated_at BIGINT NOT NULL DEFAULT 0;

-- From when a validated credential may recover the account and stand in for others. 0: from the beginning.
ALTER TABLE credentials ADD COLUMN trusted_from BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE credentials DROP COLUMN trusted_from;
ALTER TABLE sessions DROP COLUMN authenticated_at;
