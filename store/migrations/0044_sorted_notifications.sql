-- +goose Up

-- Of each record, also those that were read: to search and sort by it. Marking a record as read still finds the unread ones first.
DROP INDEX notifications_rec_id_idx;
CREATE INDEX notifications_rec_id_idx ON notifications (rec_id, user_id, read) WHERE deleted = FALSE;
-- Of each customer. Without the hidden ones the index alone counts them and keeps their order.
DROP INDEX notifications_customer_id_idx;
CREATE INDEX notifications_customer_id_idx ON notifications (customer_id, created_at, id) WHERE deleted = FALSE;
-- Those with a text that somebody wrote, which are few.
CREATE INDEX notifications_content_idx ON notifications (content_low, created_at, id) WHERE content_low <> '' AND deleted = FALSE;

-- Those that were read, by the time of it. The newest one of each time is found at once.
DROP INDEX notifications_read_at_idx;
CREATE INDEX notifications_read_at_idx ON notifications (read_at, created_at, id) WHERE read_at IS NOT NULL AND deleted = FALSE;

-- +goose Down

DROP INDEX notifications_read_at_idx;
CREATE INDEX notifications_read_at_idx ON notifications (read_at, id) WHERE read_at IS NOT NULL AND deleted = FALSE;
DROP INDEX notifications_content_idx;
DROP INDEX notifications_customer_id_idx;
CREATE INDEX notifications_customer_id_idx ON notifications (customer_id, created_at, id);
DROP INDEX notifications_rec_id_idx;
CREATE INDEX notifications_rec_id_idx ON notifications (rec_id, user_id) WHERE read = FALSE;
