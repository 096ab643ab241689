-- +goose Up

CREATE TABLE chats (
	id         TEXT   NOT NULL PRIMARY KEY,
	type       TEXT   NOT NULL,
	pair       TEXT, -- of a direct chat: the ids of both users, the smaller one first
	metadata   TEXT   NOT NULL,
	last_seq   BIGINT NOT NULL DEFAULT 0, -- the number of the last message
	created_at BIGINT NOT NULL,
	created_by TEXT   NOT NULL,
	updated_at BIGINT NOT NULL, -- the latest activity
	version    BIGINT NOT NULL DEFAULT 1,
	CONSTRAINT chats_type_check CHECK (type = 'direct' OR type = 'group' OR type = 'support'),
	CONSTRAINT chats_pair_check CHECK ((type = 'direct') = (pair IS NOT NULL)),
	CONSTRAINT chats_pair_key UNIQUE (pair)
);

CREATE TABLE chat_participants (
	chat_id   TEXT   NOT NULL REFERENCES chats (id),
	user_id   TEXT   NOT NULL REFERENCES users (id),
	read_seq  BIGINT NOT NULL, -- the number of the last message that the user has read
	joined_at BIGINT NOT NULL,
	added_by  TEXT   NOT NULL,
	PRIMARY KEY (chat_id, user_id)
);
CREATE INDEX chat_participants_user_id_idx ON chat_participants (user_id, chat_id);
-- Everybody's position in a chat, read from the index alone.
CREATE INDEX chat_participants_read_seq_idx ON chat_participants (chat_id, user_id, read_seq);

-- The messages of a chat are numbered from 1 without gaps, and so are those of each sender in it: what is unread is the
-- difference of two numbers, however many messages there are.
CREATE TABLE chat_messages (
	id         TEXT   NOT NULL PRIMARY KEY,
	chat_id    TEXT   NOT NULL REFERENCES chats (id),
	seq        BIGINT NOT NULL,
	sender_id  TEXT   NOT NULL,
	sender_seq BIGINT NOT NULL,
	type       TEXT   NOT NULL,
	content    TEXT   NOT NULL, -- of a system message: the key of its text
	metadata   TEXT   NOT NULL,
	created_at BIGINT NOT NULL,
	CONSTRAINT chat_messages_type_check CHECK (type IN ('text', 'system')),
	CONSTRAINT chat_messages_seq_key UNIQUE (chat_id, seq)
);
CREATE INDEX chat_messages_sender_id_idx ON chat_messages (chat_id, sender_id, seq, sender_seq);
CREATE INDEX chat_messages_created_at_idx ON chat_messages (chat_id, created_at, seq);

-- +goose Down
DROP TABLE chat_messages;
DROP TABLE chat_participants;
DROP TABLE chats;
