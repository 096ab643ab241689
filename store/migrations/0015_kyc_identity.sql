-- +goose Up

-- What changed of a customer's identity with the entry: JSON, encrypted; empty for an entry without such a change.
ALTER TABLE kyc_changes ADD COLUMN changes_sealed TEXT NOT NULL DEFAULT '';

-- Who a customer was before its name or date of birth changed, as keyed hashes: a reviewer who is any of them does not
-- decide the case.
CREATE TABLE customer_identities (
	customer_id TEXT   NOT NULL REFERENCES customers (id),
	name_hash   TEXT   NOT NULL,
	birth_hash  TEXT   NOT NULL, -- empty where no date of birth was known
	until       BIGINT NOT NULL,
	PRIMARY KEY (customer_id, name_hash, birth_hash)
);

-- +goose Down
DROP TABLE customer_identities;
ALTER TABLE kyc_changes DROP COLUMN changes_sealed;
