-- +goose Up

-- The day by which a task should be done, and the last day on which its assignees were reminded of it, as YYYY-MM-DD.
ALTER TABLE tasks ADD COLUMN due_on TEXT;
ALTER TABLE tasks ADD COLUMN reminded_on TEXT;
CREATE INDEX tasks_due_on_idx ON tasks (due_on, id) WHERE due_on IS NOT NULL;
CREATE INDEX tasks_created_at_idx ON tasks (created_at, id);

-- Keeping a message in the local outbox is its attempt.
UPDATE deliveries SET attempts = 1 WHERE status = 'sent' AND attempts = 0;

-- QR-bills that a user has read and kept. What a bill says is sealed.
CREATE TABLE bills (
	id             TEXT   NOT NULL PRIMARY KEY,
	user_id        TEXT   NOT NULL REFERENCES users (id),
	content_sealed TEXT   NOT NULL,
	read_at        BIGINT NOT NULL
);
CREATE INDEX bills_user_id_idx ON bills (user_id, read_at, id);
CREATE INDEX bills_read_at_idx ON bills (read_at);

-- +goose Down

DROP TABLE bills;
DROP INDEX tasks_created_at_idx;
DROP INDEX tasks_due_on_idx;
ALTER TABLE tasks DROP COLUMN reminded_on;
ALTER TABLE tasks DROP COLUMN due_on;
