-- +goose Up

-- Published by customers: the user who has created the record of a customer, and whom the customer's chats with the bank are with.
CREATE VIEW customer_users AS
SELECT id AS customer_id, created_by AS user_id FROM customers WHERE erased_at IS NULL;

-- +goose Down

DROP VIEW customer_users;
