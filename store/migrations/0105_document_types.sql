-- +goose Up

-- The column type has what a document counts as. given_type is the type as a client gave it; empty if it is the same. late is true
-- for a document that had expired whenever it was submitted: it has never proven anything.
ALTER TABLE kyc_documents ADD COLUMN given_type TEXT NOT NULL DEFAULT '';
ALTER TABLE kyc_documents ADD COLUMN late BOOLEAN NOT NULL DEFAULT FALSE;

-- +goose Down

ALTER TABLE kyc_documents DROP COLUMN late;
ALTER TABLE kyc_documents DROP COLUMN given_type;
