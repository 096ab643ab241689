-- +goose Up

-- The chat message that a notification is about, which frames of the stream carry; empty for none. The text stays in the
-- chat alone.
ALTER TABLE notifications ADD COLUMN chat_message_id TEXT NOT NULL DEFAULT '';

-- +goose Down

ALTER TABLE notifications DROP COLUMN chat_message_id;
