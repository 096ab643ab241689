-- +goose Up

-- What happened, once for all who are to hear of it: the source of the copies. Deleting it hides every copy.
CREATE TABLE notices (
	id          TEXT    NOT NULL PRIMARY KEY,
	event       TEXT    NOT NULL,
	customer_id TEXT    NOT NULL, -- the nil id where it concerns no customer
	rec_type    TEXT    NOT NULL,
	rec_id      TEXT    NOT NULL,
	created_at  BIGINT  NOT NULL,
	created_by  TEXT    NOT NULL,
	deleted     BOOLEAN NOT NULL DEFAULT FALSE,
	deleted_at  BIGINT,
	deleted_by  TEXT,
	version     BIGINT  NOT NULL DEFAULT 1
);

-- The copy of each recipient. Title and content are worded when they are read, from the event's template and the
-- hidden metadata, or from the keys; content holds only what somebody wrote.
CREATE TABLE notifications (
	id          TEXT    NOT NULL PRIMARY KEY,
	notice_id   TEXT    NOT NULL REFERENCES notices (id),
	user_id     TEXT    NOT NULL,
	customer_id TEXT    NOT NULL,
	event       TEXT    NOT NULL,
	title_key   TEXT    NOT NULL,
	content_key TEXT    NOT NULL,
	content     TEXT    NOT NULL DEFAULT '',
	content_low TEXT    NOT NULL DEFAULT '', -- folded, for searches
	rec_type    TEXT    NOT NULL,
	rec_id      TEXT    NOT NULL,
	metadata    TEXT    NOT NULL,
	system      BOOLEAN NOT NULL, -- to be replayed when it has never reached a stream
	created_at  BIGINT  NOT NULL, -- never smaller than that of an earlier commit: with the id the order of the streams
	sent_at     BIGINT,           -- first written to a stream
	read        BOOLEAN NOT NULL DEFAULT FALSE,
	read_at     BIGINT,
	deleted     BOOLEAN NOT NULL DEFAULT FALSE, -- with its source
	version     BIGINT  NOT NULL DEFAULT 1
);
-- Lists: of one user, of his unread ones, of everybody, of one customer. Those of a user are not partial: a condition
-- with OR would not use them then.
CREATE INDEX notifications_user_id_idx ON notifications (user_id, deleted, created_at, id);
CREATE INDEX notifications_read_idx ON notifications (user_id, deleted, read, created_at, id);
CREATE INDEX notifications_created_at_idx ON notifications (created_at, id) WHERE deleted = FALSE;
CREATE INDEX notifications_customer_id_idx ON notifications (customer_id, created_at, id);
-- Marking read what refers to a record. The record comes first: the copies of a notice then lie side by side, and writing
-- them touches few pages.
CREATE INDEX notifications_rec_id_idx ON notifications (rec_id, user_id) WHERE read = FALSE;
-- What is replayed when a stream opens.
CREATE INDEX notifications_unsent_idx ON notifications (user_id, created_at, id)
	WHERE sent_at IS NULL AND system = TRUE AND deleted = FALSE;

-- What is due on a channel.
CREATE INDEX deliveries_due_idx ON deliveries (channel, status, next_attempt_at, id);

-- +goose Down
DROP INDEX deliveries_due_idx;
DROP TABLE notifications;
DROP TABLE notices;
