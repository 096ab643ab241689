-- +goose Up

-- What a key may call: names of endpoints with commas between them, empty for all, which keys have that were made before.
ALTER TABLE api_keys ADD COLUMN scopes TEXT NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN expires_at BIGINT;

-- The password is the random one that the first start printed. A new password clears the mark.
ALTER TABLE passwords ADD COLUMN printed BOOLEAN NOT NULL DEFAULT FALSE;

-- +goose Down
ALTER TABLE passwords DROP COLUMN printed;
ALTER TABLE api_keys DROP COLUMN expires_at;
ALTER TABLE api_keys DROP COLUMN scopes;
