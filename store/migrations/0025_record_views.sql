-- +goose Up

-- Published by customers: the language for messages to a customer; empty for none.
CREATE VIEW customer_languages AS SELECT id, language FROM customers;

-- Published by the store: the audit trail. Only the store writes entries.
CREATE VIEW audit_trail AS
SELECT seq, form, at, actor, kind, action, rec_type, rec_id, session_id, network, request_id, detail, before_hash, after_hash, prev_hash, hash
FROM audit_entries;

-- +goose Down

DROP VIEW audit_trail;
DROP VIEW customer_languages;
