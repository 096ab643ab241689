-- +goose Up

-- Customers in the order of creation, with everything that lists search and sort by: whatever else a list asks for, this index
-- alone answers, and only the rows of the page are read. It takes the place of an index that ended after the id.
DROP INDEX customers_created_idx;
CREATE INDEX customers_created_idx ON customers (created_at, id, kyc_status, verification_level, type, created_by, updated_at,
	date_of_birth, nationality, country, postal_code, phone, city_key, first_name_key, last_name_key, email_key);

-- Of each event, for its number in all inboxes and for the newest of each.
CREATE INDEX notifications_event_idx ON notifications (event, created_at, id) WHERE deleted = FALSE;
-- The hidden ones, which are few: the others are all less these.
CREATE INDEX notifications_deleted_idx ON notifications (id) WHERE deleted = TRUE;
-- Those that were read, by the time of it. The others are in the order of their ids.
CREATE INDEX notifications_read_at_idx ON notifications (read_at, id) WHERE read_at IS NOT NULL AND deleted = FALSE;
-- Those of one user, with what the lists of inboxes search and sort by besides.
DROP INDEX notifications_read_idx;
CREATE INDEX notifications_read_idx ON notifications (user_id, deleted, read, created_at, id, read_at, event);

-- +goose Down

DROP INDEX notifications_read_idx;
CREATE INDEX notifications_read_idx ON notifications (user_id, deleted, read, created_at, id);
DROP INDEX notifications_read_at_idx;
DROP INDEX notifications_deleted_idx;
DROP INDEX notifications_event_idx;
DROP INDEX customers_created_idx;
CREATE INDEX customers_created_idx ON customers (created_at, id);
