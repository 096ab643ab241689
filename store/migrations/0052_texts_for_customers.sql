-- +goose Up

-- What a decision that needed a second person says to the customer. Its reason is for reviewers.
ALTER TABLE kyc_decisions ADD COLUMN customer_reason TEXT NOT NULL DEFAULT '';

-- The confirmed decision of an entry of the history, which has the reason of the reviewers. The reason of the entry is for the customer.
ALTER TABLE kyc_changes ADD COLUMN decision_id TEXT;

-- Earlier versions copied the reason of a confirmed decision into the history.
UPDATE kyc_changes SET decision_id = (
	SELECT MIN(d.id) FROM kyc_decisions d
	WHERE d.customer_id = kyc_changes.customer_id AND d.state = 'confirmed' AND d.closed_by = kyc_changes.changed_by
		AND d.kyc_status = kyc_changes.to_status AND d.verification_level = kyc_changes.verification_level AND d.reason = kyc_changes.reason)
WHERE reason <> '';
UPDATE kyc_changes SET reason = '' WHERE decision_id IS NOT NULL;

-- Published by customers: the evidence of when the identity of customers was verified. It is the time that a reviewer stated, when that
-- was recorded, and when the customer was. Only the latest row of a customer counts. Customers who never were verified have no rows.
CREATE VIEW customer_verifications AS
SELECT id AS customer_id, verified_at FROM customers WHERE verified_at IS NOT NULL
UNION ALL
SELECT customer_id, changed_at AS verified_at FROM kyc_changes WHERE to_status = 'verified'
UNION ALL
SELECT customer_id, closed_at AS verified_at FROM kyc_decisions WHERE state = 'confirmed' AND kyc_status = 'verified'
UNION ALL
SELECT c.id AS customer_id, c.created_at AS verified_at FROM customers c
WHERE c.kyc_status IN ('verified', 'expired') OR c.verified_at IS NOT NULL
	OR EXISTS (SELECT 1 FROM kyc_changes k WHERE k.customer_id = c.id AND k.to_status = 'verified');

-- The users who gave up an address, to find the records of one person.
CREATE INDEX former_marks_digest_idx ON former_marks (digest, user_id);

-- +goose Down

DROP INDEX former_marks_digest_idx;
DROP VIEW customer_verifications;
UPDATE kyc_changes SET reason = (SELECT d.reason FROM kyc_decisions d WHERE d.id = kyc_changes.decision_id) WHERE decision_id IS NOT NULL;
ALTER TABLE kyc_changes DROP COLUMN decision_id;
ALTER TABLE kyc_decisions DROP COLUMN customer_reason;
