-- +goose Up

-- by_staff: the creator acted for the bank. Their relation to the record lasts as long as they do. For records of earlier versions, all are
-- the bank's but those of creators who may create such records without acting for the bank.
ALTER TABLE customers ADD COLUMN by_staff BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE personas ADD COLUMN by_staff BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE payers ADD COLUMN by_staff BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE tasks ADD COLUMN by_staff BOOLEAN NOT NULL DEFAULT FALSE;

CREATE TABLE acting_for_themselves AS
SELECT t.rec_type, u.user_id
FROM (SELECT DISTINCT rec_type FROM permissions WHERE rec_id = '' AND rec_type IN ('customers', 'personas', 'payers', 'tasks')) t,
	(SELECT id AS user_id FROM users) u
WHERE EXISTS (SELECT 1 FROM permissions p WHERE p.rec_type = t.rec_type AND p.rec_id = '' AND p.permission = 'create'
		AND (p.principal_id = u.user_id OR p.principal_id IN (SELECT h.role_id FROM held_roles h WHERE h.user_id = u.user_id)))
	AND NOT EXISTS (SELECT 1 FROM permissions p WHERE p.rec_type = t.rec_type AND p.rec_id = '' AND p.permission IN ('update', 'read_all')
		AND (p.principal_id = u.user_id OR p.principal_id IN (SELECT h.role_id FROM held_roles h WHERE h.user_id = u.user_id)))
	AND NOT EXISTS (SELECT 1 FROM held_roles h WHERE h.user_id = u.user_id AND h.role_id = '0193b000-0000-7000-8000-000000000001');

UPDATE customers SET by_staff = TRUE
WHERE created_by NOT IN (SELECT user_id FROM acting_for_themselves WHERE rec_type = 'customers') OR id IN (SELECT record_id FROM import_rows);
UPDATE personas SET by_staff = TRUE WHERE created_by NOT IN (SELECT user_id FROM acting_for_themselves WHERE rec_type = 'personas');
UPDATE payers SET by_staff = TRUE WHERE created_by NOT IN (SELECT user_id FROM acting_for_themselves WHERE rec_type = 'payers');
UPDATE tasks SET by_staff = TRUE WHERE created_by NOT IN (SELECT user_id FROM acting_for_themselves WHERE rec_type = 'tasks');
DROP TABLE acting_for_themselves;

DROP VIEW customer_users;

-- Published by customers: the user who has recorded themselves as a customer, and whom the customer's chats with the bank are with.
CREATE VIEW customer_users AS
SELECT id AS customer_id, created_by AS user_id FROM customers WHERE erased_at IS NULL AND by_staff = FALSE;

-- The record that a row of a file was skipped or rejected for.
ALTER TABLE import_rejections ADD COLUMN record_id TEXT NOT NULL DEFAULT '';

-- +goose Down

ALTER TABLE import_rejections DROP COLUMN record_id;
DROP VIEW customer_users;

-- Published by customers: the user who has created the record of a customer.
CREATE VIEW customer_users AS
SELECT id AS customer_id, created_by AS user_id FROM customers WHERE erased_at IS NULL;
ALTER TABLE tasks DROP COLUMN by_staff;
ALTER TABLE payers DROP COLUMN by_staff;
ALTER TABLE personas DROP COLUMN by_staff;
ALTER TABLE customers DROP COLUMN by_staff;
