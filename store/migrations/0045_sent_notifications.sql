-- +goose Up

-- Of everybody, with the columns of few values: a filter by them passes the rows in their order without reading the others.
-- Writing a notification still adds one entry.
DROP INDEX notifications_created_at_idx;
CREATE INDEX notifications_created_at_idx ON notifications (created_at, id, read, rec_type, event, sent_at, read_at) WHERE deleted = FALSE;
-- Those that were written to a stream, by the time of it. A new notification is not among them.
CREATE INDEX notifications_sent_at_idx ON notifications (sent_at, created_at, id) WHERE sent_at IS NOT NULL AND deleted = FALSE;

-- +goose Down

DROP INDEX notifications_sent_at_idx;
DROP INDEX notifications_created_at_idx;
CREATE INDEX notifications_created_at_idx ON notifications (created_at, id) WHERE deleted = FALSE;
