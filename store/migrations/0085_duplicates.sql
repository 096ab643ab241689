-- +goose Up

-- Texts by which a search for duplicates finds a customer: keys of their names, and the date of birth. They are written when a search is
-- the first to need them: keyed_version is the version of the customer whose keys they are.
CREATE TABLE customer_name_keys (
	name_key    TEXT NOT NULL,
	customer_id TEXT NOT NULL,
	PRIMARY KEY (name_key, customer_id)
);
CREATE INDEX customer_name_keys_customer_idx ON customer_name_keys (customer_id);
ALTER TABLE customers ADD COLUMN keyed_version BIGINT NOT NULL DEFAULT 0;
CREATE INDEX customers_unkeyed_idx ON customers (id) WHERE keyed_version <> version;

-- Customers who were found to be two persons. The first id is the smaller one.
CREATE TABLE customer_distinctions (
	customer_id TEXT   NOT NULL REFERENCES customers (id),
	other_id    TEXT   NOT NULL REFERENCES customers (id),
	created_at  BIGINT NOT NULL,
	created_by  TEXT   NOT NULL,
	PRIMARY KEY (customer_id, other_id),
	CONSTRAINT customer_distinctions_order_check CHECK (customer_id < other_id)
);
CREATE INDEX customer_distinctions_other_idx ON customer_distinctions (other_id);

-- +goose Down

DROP TABLE customer_distinctions;
DROP INDEX customers_unkeyed_idx;
ALTER TABLE customers DROP COLUMN keyed_version;
DROP TABLE customer_name_keys;
