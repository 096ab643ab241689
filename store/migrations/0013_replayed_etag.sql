-- +goose Up

-- The validator of the record that an answer shows, so that a replay has the header, too.
ALTER TABLE idempotency_keys ADD COLUMN etag TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE idempotency_keys DROP COLUMN etag;
