-- +goose Up
CREATE TABLE customers (
	id                 TEXT    NOT NULL PRIMARY KEY,
	type               TEXT    NOT NULL CHECK (type IN ('individual', 'business')),
	first_name         TEXT    NOT NULL,
	first_name_key     TEXT    NOT NULL,
	last_name          TEXT    NOT NULL,
	last_name_key      TEXT    NOT NULL,
	email              TEXT    NOT NULL,
	email_key          TEXT    NOT NULL,
	phone              TEXT,
	date_of_birth      TEXT,
	nationality        TEXT,
	has_address        BOOLEAN NOT NULL,
	street             TEXT    NOT NULL,
	city               TEXT    NOT NULL,
	city_key           TEXT    NOT NULL,
	postal_code        TEXT    NOT NULL,
	country            TEXT    NOT NULL,
	kyc_status         TEXT    NOT NULL CHECK (
		kyc_status = 'not_started' OR kyc_status = 'pending' OR kyc_status = 'in_review' OR
		kyc_status = 'verified' OR kyc_status = 'rejected' OR kyc_status = 'action_required' OR
		kyc_status = 'expired'),
	verification_level TEXT    NOT NULL CHECK (
		verification_level = 'none' OR verification_level = 'basic' OR
		verification_level = 'standard' OR verification_level = 'enhanced'),
	verified_at        BIGINT,
	metadata           TEXT    NOT NULL,
	language           TEXT    NOT NULL,
	created_at         BIGINT  NOT NULL,
	created_by         TEXT    NOT NULL,
	updated_at         BIGINT  NOT NULL,
	updated_by         TEXT    NOT NULL,
	version            BIGINT  NOT NULL DEFAULT 1
);

CREATE INDEX customers_created_idx ON customers (created_at, id);
CREATE INDEX customers_owner_idx ON customers (created_by, created_at, id);
CREATE INDEX customers_status_idx ON customers (kyc_status, created_at, id);
CREATE INDEX customers_last_name_idx ON customers (last_name_key, id);
CREATE INDEX customers_email_idx ON customers (email_key, id);

CREATE TABLE kyc_documents (
	id            TEXT   NOT NULL PRIMARY KEY,
	customer_id   TEXT   NOT NULL REFERENCES customers (id),
	type          TEXT   NOT NULL CHECK (
		type = 'passport' OR type = 'identity_card' OR type = 'residence_permit' OR
		type = 'driving_licence' OR type = 'proof_of_address' OR type = 'other'),
	number_sealed TEXT   NOT NULL, -- AES-256-GCM
	number_key    TEXT   NOT NULL, -- keyed hash, to find the same number again
	country       TEXT   NOT NULL, -- as given
	country_key   TEXT   NOT NULL, -- alpha-3
	expiry_date   TEXT,
	warned_at     BIGINT,          -- when somebody was told that it expires soon
	created_at    BIGINT NOT NULL,
	created_by    TEXT   NOT NULL,
	updated_at    BIGINT NOT NULL,
	version       BIGINT NOT NULL DEFAULT 1,
	CONSTRAINT kyc_documents_number_key UNIQUE (customer_id, type, number_key, country_key)
);

CREATE INDEX kyc_documents_expiry_idx ON kyc_documents (expiry_date, customer_id);

CREATE TABLE kyc_changes (
	id                 TEXT   NOT NULL PRIMARY KEY,
	customer_id        TEXT   NOT NULL REFERENCES customers (id),
	from_status        TEXT   NOT NULL,
	to_status          TEXT   NOT NULL,
	verification_level TEXT   NOT NULL,
	reason             TEXT   NOT NULL,
	changed_at         BIGINT NOT NULL,
	changed_by         TEXT   NOT NULL
);

CREATE INDEX kyc_changes_customer_idx ON kyc_changes (customer_id, changed_at, id);

-- +goose Down
DROP TABLE kyc_changes;
DROP TABLE kyc_documents;
DROP TABLE customers;
