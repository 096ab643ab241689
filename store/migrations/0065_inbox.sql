-- +goose Up

-- Owned by chats: the conversations of customers with the bank as a whole, each about one chat of the type support. A thread is work of
-- the bank: nothing of it is shown to the customer, who sees the chat.
CREATE TABLE inbox_threads (
	chat_id       TEXT    PRIMARY KEY REFERENCES chats (id),
	user_id       TEXT    NOT NULL,
	state         TEXT    NOT NULL,
	assignee      TEXT,
	snoozed_until BIGINT,
	created_at    BIGINT  NOT NULL,
	changed_at    BIGINT  NOT NULL,
	changed_by    TEXT    NOT NULL,
	version       BIGINT  NOT NULL DEFAULT 1,
	CONSTRAINT inbox_threads_user_key UNIQUE (user_id),
	CONSTRAINT inbox_threads_state_check CHECK (state IN ('open', 'waiting', 'closed'))
);
CREATE INDEX inbox_threads_state_idx ON inbox_threads (state, changed_at, chat_id);
CREATE INDEX inbox_threads_assignee_idx ON inbox_threads (assignee, state);
CREATE INDEX inbox_threads_changed_idx ON inbox_threads (changed_at, chat_id);
CREATE INDEX inbox_threads_created_idx ON inbox_threads (created_at, chat_id);

-- Owned by chats: what staff write about a thread for each other. They are no messages: no list, stream, search or export of messages
-- reads this table.
CREATE TABLE inbox_notes (
	id         TEXT   PRIMARY KEY,
	chat_id    TEXT   NOT NULL REFERENCES inbox_threads (chat_id),
	author_id  TEXT   NOT NULL,
	content    TEXT   NOT NULL,
	created_at BIGINT NOT NULL
);
CREATE INDEX inbox_notes_chat_idx ON inbox_notes (chat_id, created_at, id);

-- +goose Down

DROP TABLE inbox_notes;
DROP TABLE inbox_threads;
