-- +goose Up

-- Decisions about the verification of a customer that need a second person. A pending one waits; the others are its history.
CREATE TABLE kyc_decisions (
	id                 TEXT   NOT NULL PRIMARY KEY,
	customer_id        TEXT   NOT NULL REFERENCES customers (id),
	kyc_status         TEXT   NOT NULL,
	verification_level TEXT   NOT NULL,
	verified_at        BIGINT,
	reason             TEXT   NOT NULL,
	evidence_key       TEXT   NOT NULL, -- digest of the documents that the decision is about
	state              TEXT   NOT NULL CHECK (
		state = 'pending' OR state = 'confirmed' OR state = 'rejected' OR state = 'withdrawn' OR state = 'void'),
	proposed_at        BIGINT NOT NULL,
	proposed_by        TEXT   NOT NULL,
	closed_at          BIGINT,
	closed_by          TEXT   NOT NULL DEFAULT '',
	closing_reason     TEXT   NOT NULL DEFAULT ''
);

CREATE UNIQUE INDEX kyc_decisions_pending_idx ON kyc_decisions (customer_id) WHERE state = 'pending';
CREATE INDEX kyc_decisions_customer_idx ON kyc_decisions (customer_id, proposed_at, id);

-- The open cases: customers whose verification waits for a reviewer. A row exists while the state of the customer is pending or
-- in_review, or a decision waits for a second person.
CREATE TABLE kyc_cases (
	customer_id     TEXT   NOT NULL PRIMARY KEY REFERENCES customers (id),
	opened_at       BIGINT NOT NULL,
	suggested_level TEXT   NOT NULL, -- what the documents support
	country         TEXT   NOT NULL, -- alpha-3, of the address or the nationality; empty for none
	assignee        TEXT,
	assigned_at     BIGINT,
	decision_id     TEXT             -- the pending decision
);

CREATE INDEX kyc_cases_opened_idx ON kyc_cases (opened_at, customer_id);
CREATE INDEX kyc_cases_assignee_idx ON kyc_cases (assignee, opened_at, customer_id);

-- Levels and countries of existing cases follow at the next start.
INSERT INTO kyc_cases (customer_id, opened_at, suggested_level, country)
SELECT id, updated_at, '', '' FROM customers WHERE kyc_status IN ('pending', 'in_review') AND erased_at IS NULL;

-- +goose Down
DROP TABLE kyc_cases;
DROP TABLE kyc_decisions;
