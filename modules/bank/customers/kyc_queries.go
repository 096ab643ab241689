package customers

import (
	"context"
	"errors"
	"fmt"

	"kontor/store"
)

const updateVerificationStatement = `
	UPDATE customers SET kyc_status = $2, verification_level = $3, verified_at = $4, updated_at = $5, updated_by = $6, version = $7
	WHERE id = $1`

const selectDocuments = `
	SELECT id, type, number_sealed, number_key, country, expiry_date, created_at, ` + countFiles + `
	FROM kyc_documents
	WHERE customer_id = $1
	ORDER BY created_at, id`

const countFiles = `(SELECT COUNT(*) FROM attached_files a WHERE a.record_id = kyc_documents.id AND a.record_type = 'kyc_documents')`

const upsertDocumentStatement = `
	INSERT INTO kyc_documents (
		id, customer_id, type, number_sealed, number_key, country, country_key, expiry_date, created_at, created_by, updated_at)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $9)
	ON CONFLICT (customer_id, type, number_key, country_key) DO UPDATE SET
		number_sealed = excluded.number_sealed, country = excluded.country, expiry_date = excluded.expiry_date,
		warned_at = NULL, updated_at = excluded.updated_at, version = kyc_documents.version + 1`

// updateOlderNumberStatement moves a document from its hash under a former key to the present one.
const updateOlderNumberStatement = `
	UPDATE kyc_documents SET number_key = $5, number_sealed = $6
	WHERE customer_id = $1 AND type = $2 AND number_key = $3 AND country_key = $4`

const insertChangeStatement = `
	INSERT INTO kyc_changes (id, customer_id, from_status, to_status, verification_level, reason, changed_at, changed_by, changes_sealed, decision_id)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`

// changeColumns of kyc_changes end with the reason for reviewers, which is that of the confirmed decision.
const changeColumns = `
	id, from_status, to_status, verification_level, reason, changed_at, changed_by, changes_sealed, decision_id,
	COALESCE((SELECT d.reason FROM kyc_decisions d WHERE d.id = decision_id), '') AS internal_reason`

// selectChangesStatement reads the newest 100 changes of the state and the newest 100 of the identity alone. Repeated changes
// of an identity therefore cannot push the decisions out of the answer.
const selectChangesStatement = `
	SELECT * FROM (SELECT ` + changeColumns + `
		FROM kyc_changes
		WHERE customer_id = $1 AND (from_status <> to_status OR changes_sealed = '')
		ORDER BY changed_at DESC, id DESC
		LIMIT 100) AS decisions
	UNION ALL
	SELECT * FROM (SELECT ` + changeColumns + `
		FROM kyc_changes
		WHERE customer_id = $1 AND from_status = to_status AND changes_sealed <> ''
		ORDER BY changed_at DESC, id DESC
		LIMIT 100) AS identities
	ORDER BY changed_at DESC, id DESC`

// hasDecidedStatement finds a decision about a customer by a reviewer, also one that they only proposed.
const hasDecidedStatement = `
	SELECT 1 FROM kyc_changes
	WHERE customer_id = $1 AND changed_by = $2 AND to_status IN ('verified', 'rejected', 'action_required', 'expired')
		AND (from_status <> to_status OR changes_sealed = '')
	UNION
	SELECT 1 FROM kyc_decisions WHERE customer_id = $1 AND proposed_by = $2
	LIMIT 1`

const selectValidity = `
	SELECT id, type, number_key, country_key, expiry_date, ` + countFiles + ` FROM kyc_documents WHERE customer_id = $1`

const selectIdentitiesStatement = `SELECT name_hash, birth_hash FROM customer_identities WHERE customer_id = $1`

const insertIdentityStatement = `
	INSERT INTO customer_identities (customer_id, name_hash, birth_hash, until)
	VALUES ($1, $2, $3, $4)
	ON CONFLICT (customer_id, name_hash, birth_hash) DO UPDATE SET until = excluded.until`

const selectFormerAddresses = `SELECT digest FROM customer_addresses WHERE customer_id = $1`

const insertFormerAddress = `
	INSERT INTO customer_addresses (customer_id, digest, until) VALUES ($1, $2, $3)
	ON CONFLICT (customer_id, digest) DO UPDATE SET until = excluded.until`

// selectExpired finds verified customers that have identity documents, all of which expired before the day $2. It does not
// use $1; it has the same parameters as selectExpiring.
const selectExpired = `
	SELECT c.id FROM customers c
	WHERE c.kyc_status = 'verified' AND $1 <> ''
		AND EXISTS (SELECT 1 FROM kyc_documents d
			WHERE d.customer_id = c.id AND d.type IN ('passport', 'identity_card', 'residence_permit', 'driving_licence'))
		AND NOT EXISTS (SELECT 1 FROM kyc_documents d
			WHERE d.customer_id = c.id AND d.type IN ('passport', 'identity_card', 'residence_permit', 'driving_licence')
				AND (d.expiry_date IS NULL OR d.expiry_date >= $2))
	ORDER BY c.created_at, c.id
	LIMIT $3`

// selectExpiring finds documents that expire from the day $2 on and before the day $1, and that have no warning yet.
const selectExpiring = `
	SELECT d.id FROM kyc_documents d
	WHERE d.expiry_date >= $2 AND d.expiry_date < $1 AND d.warned_at IS NULL
	ORDER BY d.expiry_date, d.id
	LIMIT $3`

const markWarnedStatement = `
	UPDATE kyc_documents SET warned_at = $2, version = version + 1
	WHERE id = $1
	RETURNING customer_id, type, expiry_date`

func updateVerification(ctx context.Context, tx *store.Tx, c Customer, by string) error {
	_, err := tx.Exec(ctx, updateVerificationStatement, c.ID, string(c.KYCStatus), string(c.VerificationLevel), c.verifiedAt,
		c.UpdatedAt, by, c.version)
	return err
}

func upsertDocument(ctx context.Context, tx *store.Tx, d sealedDocument, by string) error {
	for _, older := range d.olderKeys {
		if _, err := tx.Exec(ctx, updateOlderNumberStatement, d.customerID, string(d.kind), older, d.countryKey, d.numberKey, d.number); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, upsertDocumentStatement, d.id, d.customerID, string(d.kind), d.number, d.numberKey, d.country, d.countryKey,
		dateColumn(d.expiryDate), tx.Now(), by)
	if err != nil {
		return err
	}
	return auditDocument(ctx, tx, d)
}

func insertChange(ctx context.Context, tx *store.Tx, change preparedChange, by string) error {
	_, err := tx.Exec(ctx, insertChangeStatement, change.entry.id, change.after.ID, string(change.before.KYCStatus), string(change.after.KYCStatus),
		string(change.after.VerificationLevel), change.entry.reason, tx.Now(), by, change.entry.changes, change.entry.decisionID)
	if err != nil {
		return err
	}
	return changeProof.Audit(ctx, tx, "customers.kyc_change", change.entry.id, nil)
}

func hasDecided(ctx context.Context, q store.Querier, customerID, userID string) (bool, error) {
	var one int
	err := q.QueryRow(ctx, hasDecidedStatement, customerID, userID).Scan(&one)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func insertIdentity(ctx context.Context, tx *store.Tx, customerID string, h identityHash) error {
	_, err := tx.Exec(ctx, insertIdentityStatement, customerID, h.name, h.birth, tx.Now())
	return err
}

// selectIdentities returns the former identities of a customer.
func selectIdentities(ctx context.Context, q store.Querier, customerID string) ([]identityHash, error) {
	rows, err := q.Query(ctx, selectIdentitiesStatement, customerID)
	if err != nil {
		return nil, fmt.Errorf("read former identities: %w", err)
	}
	defer rows.Close()
	var former []identityHash
	for rows.Next() {
		var h identityHash
		if err := rows.Scan(&h.name, &h.birth); err != nil {
			return nil, fmt.Errorf("read former identity: %w", err)
		}
		former = append(former, h)
	}
	return former, rows.Err()
}

func selectChanges(ctx context.Context, q store.Querier, customerID string) ([]Change, error) {
	changes, err := store.All(ctx, q, scanChange, selectChangesStatement, customerID)
	if err != nil {
		return nil, fmt.Errorf("read KYC changes: %w", err)
	}
	return append([]Change{}, changes...), nil
}

func scanChange(row store.Scanner) (Change, error) {
	var c Change
	var from, to, level string
	err := row.Scan(&c.id, &from, &to, &level, &c.Reason, &c.ChangedAt, &c.ChangedBy, &c.sealed, &c.decisionID, &c.internal)
	c.From, c.To, c.VerificationLevel = Status(from), Status(to), Level(level)
	return c, err
}

// selectIDs runs a statement of the daily job.
func selectIDs(ctx context.Context, q store.Querier, statement, until, today string, limit int) ([]string, error) {
	rows, err := q.Query(ctx, statement, until, today, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

func markWarned(ctx context.Context, tx *store.Tx, id string) (customerID, kind, expiry string, err error) {
	err = tx.QueryRow(ctx, markWarnedStatement, id, tx.Now()).Scan(&customerID, &kind, &expiry)
	return customerID, kind, expiry, err
}
