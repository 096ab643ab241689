-- +goose Up

-- Published by files: the files of records that their readers may see, or will once they are checked.
CREATE VIEW attached_files AS
SELECT id, record_type, record_id, parent_id FROM files WHERE status = 'ready' OR status = 'checking';

-- Whether every valid document of the customer has a file. The next start computes it for existing cases.
ALTER TABLE kyc_cases ADD COLUMN ready BOOLEAN NOT NULL DEFAULT FALSE;

-- +goose Down

ALTER TABLE kyc_cases DROP COLUMN ready;
DROP VIEW attached_files;
