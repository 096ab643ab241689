-- +goose Up

-- The changed fields of audit entries, sealed. The entry holds a keyed digest of them in its detail, so that a change of a row
-- is detected, and a row can be deleted without a change of the chain.
CREATE TABLE audit_values (
	seq    INTEGER NOT NULL PRIMARY KEY, -- of the entry
	sealed TEXT    NOT NULL
);

-- Published by the store: whether the changed fields of an entry are kept.
CREATE VIEW audit_changes AS SELECT seq FROM audit_values;

-- +goose Down
DROP VIEW audit_changes;
DROP TABLE audit_values;
