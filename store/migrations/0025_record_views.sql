-- +goose Up

-- Published by customers: the language in which a customer receives messages; empty for none.
CREATE VIEW customer_languages AS SELECT id, language FROM customers;

-- +goose Down

DROP VIEW customer_languages;
