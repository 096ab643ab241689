-- +goose Up
CREATE TABLE payers (
	id          TEXT    NOT NULL PRIMARY KEY,
	customer_id TEXT    NOT NULL REFERENCES customers (id),
	email       TEXT,
	name        TEXT,
	company     TEXT,
	company_key TEXT    NOT NULL, -- folded, for searches; empty without a company
	country     TEXT,
	active      BOOLEAN NOT NULL,
	metadata    TEXT    NOT NULL,
	created_at  BIGINT  NOT NULL,
	created_by  TEXT    NOT NULL,
	modified_at BIGINT  NOT NULL,
	modified_by TEXT    NOT NULL,
	version     BIGINT  NOT NULL DEFAULT 1,
	CONSTRAINT payers_name_check CHECK (name IS NOT NULL OR company IS NOT NULL)
);

-- With the key of the company at its end, a search for a part of it reads this index alone.
CREATE INDEX payers_created_idx ON payers (created_at, id, company_key);
CREATE INDEX payers_owner_idx ON payers (created_by, created_at, id);
CREATE INDEX payers_country_idx ON payers (country, created_at, id);
CREATE INDEX payers_active_idx ON payers (active, created_at, id);
CREATE INDEX payers_customer_idx ON payers (customer_id, created_at, id);

-- +goose Down
DROP TABLE payers;
