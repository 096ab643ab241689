-- +goose Up

-- What is proven of a person: staff wrote it, or a reviewer has confirmed it. All else is claimed.
ALTER TABLE customers ADD COLUMN email_proven BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE customers ADD COLUMN phone_proven BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE customers ADD COLUMN identity_proven BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE customers SET email_proven = TRUE, identity_proven = TRUE WHERE by_staff = TRUE AND erased_at IS NULL;
UPDATE customers SET phone_proven = TRUE WHERE by_staff = TRUE AND erased_at IS NULL AND phone IS NOT NULL;
UPDATE customers SET identity_proven = TRUE WHERE kyc_status = 'verified' AND erased_at IS NULL;
UPDATE customers SET external_id = '' WHERE by_staff = FALSE AND external_id <> '';

ALTER TABLE customer_addresses ADD COLUMN proven BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE customer_identities ADD COLUMN proven BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE customer_addresses SET proven = TRUE WHERE customer_id IN (SELECT id FROM customers WHERE by_staff = TRUE);
UPDATE customer_identities SET proven = TRUE WHERE customer_id IN (SELECT id FROM customers WHERE by_staff = TRUE);

ALTER TABLE personas ADD COLUMN identity_proven BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE persona_names ADD COLUMN proven BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE former_identities ADD COLUMN proven BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE personas SET identity_proven = TRUE WHERE by_staff = TRUE AND erased_at IS NULL;
UPDATE persona_names SET proven = TRUE WHERE persona_id IN (SELECT id FROM personas WHERE by_staff = TRUE);
UPDATE former_identities SET proven = TRUE
WHERE EXISTS (SELECT 1 FROM persona_names n WHERE n.proven = TRUE AND n.first_name_key = former_identities.first_name_key
		AND n.last_name_key = former_identities.last_name_key AND n.date_of_birth = former_identities.date_of_birth)
	OR EXISTS (SELECT 1 FROM personas p WHERE p.identity_proven = TRUE AND p.first_name_key = former_identities.first_name_key
		AND p.last_name_key = former_identities.last_name_key AND p.date_of_birth = former_identities.date_of_birth);

-- +goose Down

ALTER TABLE former_identities DROP COLUMN proven;
ALTER TABLE persona_names DROP COLUMN proven;
ALTER TABLE personas DROP COLUMN identity_proven;
ALTER TABLE customer_identities DROP COLUMN proven;
ALTER TABLE customer_addresses DROP COLUMN proven;
ALTER TABLE customers DROP COLUMN identity_proven;
ALTER TABLE customers DROP COLUMN phone_proven;
ALTER TABLE customers DROP COLUMN email_proven;
