-- +goose Up

-- Why a hit has no entry: the doubt that a program has about the name; empty for a name that is like an entry.
ALTER TABLE screening_hits ADD COLUMN cause TEXT NOT NULL DEFAULT '';
-- The comparison with the present identity as JSON; empty while the identity is that of the hit.
ALTER TABLE screening_hits ADD COLUMN later TEXT NOT NULL DEFAULT '';
-- Why the hit was escalated to administrators; empty for all others.
ALTER TABLE screening_hits ADD COLUMN escalation TEXT NOT NULL DEFAULT '';

-- Names are read in other ways: compute the keys of all customers again.
UPDATE customers SET keyed_version = 0;

-- +goose Down

ALTER TABLE screening_hits DROP COLUMN escalation;
ALTER TABLE screening_hits DROP COLUMN later;
ALTER TABLE screening_hits DROP COLUMN cause;
