-- +goose Up

-- The end of a relationship far in the past, which waits for a second person.
ALTER TABLE relationships ADD COLUMN proposed_end BIGINT;
ALTER TABLE relationships ADD COLUMN proposed_at BIGINT;
ALTER TABLE relationships ADD COLUMN proposed_by TEXT NOT NULL DEFAULT '';

-- +goose Down

ALTER TABLE relationships DROP COLUMN proposed_by;
ALTER TABLE relationships DROP COLUMN proposed_at;
ALTER TABLE relationships DROP COLUMN proposed_end;
