-- +goose Up

-- Data keys of customers, sealed. What is sealed for a customer needs the customer's key, too: an erasure deletes it.
CREATE TABLE customer_keys (
	customer_id TEXT   NOT NULL PRIMARY KEY REFERENCES customers (id),
	key_sealed  TEXT   NOT NULL,
	created_at  BIGINT NOT NULL
);

-- When the personal data of a record was erased.
ALTER TABLE customers ADD COLUMN erased_at BIGINT;
ALTER TABLE users ADD COLUMN erased_at BIGINT;
ALTER TABLE personas ADD COLUMN erased_at BIGINT;
ALTER TABLE payers ADD COLUMN erased_at BIGINT;
ALTER TABLE tasks ADD COLUMN erased_at BIGINT;

-- The end of the business relationship with a customer; without a row, or NULL, it has not ended.
CREATE TABLE relationships (
	customer_id TEXT   NOT NULL PRIMARY KEY REFERENCES customers (id),
	ended_at    BIGINT,
	modified_at BIGINT NOT NULL,
	modified_by TEXT   NOT NULL,
	version     BIGINT NOT NULL DEFAULT 1
);
CREATE INDEX relationships_ended_at_idx ON relationships (ended_at, customer_id);

-- Customers whose data must not be erased, whatever the retention date.
CREATE TABLE legal_holds (
	customer_id TEXT   NOT NULL PRIMARY KEY REFERENCES customers (id),
	reason      TEXT   NOT NULL,
	until       TEXT,
	created_at  BIGINT NOT NULL,
	created_by  TEXT   NOT NULL,
	version     BIGINT NOT NULL DEFAULT 1
);

-- Erasures of persons: ids and times only.
CREATE TABLE erasures (
	id           TEXT   NOT NULL PRIMARY KEY,
	kind         TEXT   NOT NULL,
	subject_id   TEXT   NOT NULL,
	reason       TEXT   NOT NULL,
	status       TEXT   NOT NULL,
	requested_at BIGINT NOT NULL,
	requested_by TEXT   NOT NULL,
	erased_at    BIGINT,
	version      BIGINT NOT NULL DEFAULT 1,
	CONSTRAINT erasures_subject_key UNIQUE (kind, subject_id),
	CONSTRAINT erasures_kind_check CHECK (kind IN ('customer', 'user', 'persona')),
	CONSTRAINT erasures_status_check CHECK (status IN ('running', 'cleaning', 'erased'))
);
CREATE INDEX erasures_requested_at_idx ON erasures (requested_at, id);

-- What one user has written or created, in the order in which an erasure walks through it.
CREATE INDEX chat_messages_sender_idx ON chat_messages (sender_id, id);
CREATE INDEX chats_created_by_idx ON chats (created_by, id);
CREATE INDEX kyc_documents_customer_id_idx ON kyc_documents (customer_id, id);

-- +goose Down

DROP INDEX kyc_documents_customer_id_idx;
DROP INDEX chats_created_by_idx;
DROP INDEX chat_messages_sender_idx;
DROP TABLE erasures;
DROP TABLE legal_holds;
DROP TABLE relationships;
ALTER TABLE tasks DROP COLUMN erased_at;
ALTER TABLE payers DROP COLUMN erased_at;
ALTER TABLE personas DROP COLUMN erased_at;
ALTER TABLE users DROP COLUMN erased_at;
ALTER TABLE customers DROP COLUMN erased_at;
DROP TABLE customer_keys;
