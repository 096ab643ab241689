-- +goose Up

-- When something that a pending verification is about was changed or removed: it can no longer be confirmed, and waits for a reviewer.
ALTER TABLE kyc_decisions ADD COLUMN outdated_at BIGINT;

-- Why no reviewer may work on a case, and when administrators were notified of it.
ALTER TABLE kyc_cases ADD COLUMN escalation TEXT NOT NULL DEFAULT '';
ALTER TABLE kyc_cases ADD COLUMN escalated_at BIGINT;

-- +goose Down

ALTER TABLE kyc_cases DROP COLUMN escalated_at;
ALTER TABLE kyc_cases DROP COLUMN escalation;
ALTER TABLE kyc_decisions DROP COLUMN outdated_at;
