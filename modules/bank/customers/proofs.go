package customers

import (
	"context"
	"fmt"

	"kontor/modules/kit/records"
	"kontor/store"
)

// Proofs declares how the audit trail reads the records of this module. Not covered are the columns updated_by of customers,
// because the audit entry of the update names the actor, warned_at of documents, the sort keys of names, and the external id, which the
// covered metadata has. Nor are the open cases,
// which follow from the customers, except for who works on them.
func Proofs() []records.Proof {
	customers := table.Proof()
	customers.Read, customers.Changes = readCustomer, &store.ChangeRule{Omit: []string{"updated_at", "erased_at"}}
	return []records.Proof{customers, documentProof, changeProof, decisionProof}
}

// audited returns the record that audit entries digest: the customer, and the columns that the API does not show. All
// entries use it, so that each change begins with the state that the previous one left.
func audited(c Customer) store.Record {
	keys := c.searchKeys()
	return store.Record{Answer: c, Stored: c.stored(&keys)}
}

// stored returns the columns of the customer that the API does not show.
func (c *Customer) stored(k *searchKeys) storedCustomer {
	return storedCustomer{c.verifiedAt, c.createdBy, c.version, k.firstName, k.lastName, k.email, k.city, k.language}
}

// storedCustomer holds the columns of a customer that the API does not show.
type storedCustomer struct {
	VerifiedAt *store.Time `json:"verified_at"`
	CreatedBy  string      `json:"created_by"`
	Version    int64       `json:"version"`
	// Derived from the members that the API shows; searches and the comparison of persons read these.
	FirstName string `json:"first_name_key"`
	LastName  string `json:"last_name_key"`
	Email     string `json:"email_key"`
	City      string `json:"city_key"`
	Language  string `json:"language"`
}

const selectSearchKeys = `SELECT first_name_key, last_name_key, email_key, city_key, language FROM customers WHERE id = $1`

// readCustomer reads a customer with its search keys as they are stored. It does not compute them, so that a check finds
// wrong ones.
func readCustomer(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	c, err := table.Scan(q.QueryRow(ctx, `SELECT `+columns+` FROM customers WHERE id = $1`, id))
	if err != nil {
		return store.Record{}, err
	}
	s := storedCustomer{VerifiedAt: c.verifiedAt, CreatedBy: c.createdBy, Version: c.version}
	err = q.QueryRow(ctx, selectSearchKeys, id).Scan(&s.FirstName, &s.LastName, &s.Email, &s.City, &s.Language)
	return store.Record{Answer: c, Stored: s}, err
}

// documentProof covers documents. A keyed hash proves their numbers, so that a check decrypts nothing.
var documentProof = records.Proof{
	Type: "kyc_documents", From: "kyc_documents", Key: "id", Read: readDocument, Outside: map[string]string{"number": `""`, "expired": "false"},
}

const selectDocument = `
	SELECT id, type, country, expiry_date, created_at, customer_id, number_key, country_key, created_by, updated_at
	FROM kyc_documents
	WHERE id = $1`

const selectDocumentID = `
	SELECT id FROM kyc_documents
	WHERE customer_id = $1 AND type = $2 AND number_key = $3 AND country_key = $4`

// storedDocument holds the columns of a document that the API does not show.
type storedDocument struct {
	CustomerID string     `json:"customer_id"`
	NumberKey  string     `json:"number_key"`
	CountryKey string     `json:"country_key"`
	CreatedBy  string     `json:"created_by"`
	UpdatedAt  store.Time `json:"updated_at"`
}

func readDocument(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	var d Document
	var kind string
	var s storedDocument
	err := q.QueryRow(ctx, selectDocument, id).Scan(&d.ID, &kind, &d.Country, &d.ExpiryDate, &d.CreatedAt,
		&s.CustomerID, &s.NumberKey, &s.CountryKey, &s.CreatedBy, &s.UpdatedAt)
	d.Type = DocumentType(kind)
	return store.Record{Answer: d, Stored: s}, err
}

// auditDocument writes the audit entry of a submitted document. The document may have existed before.
func auditDocument(ctx context.Context, tx *store.Tx, d sealedDocument) error {
	var id string
	if err := tx.QueryRow(ctx, selectDocumentID, d.customerID, string(d.kind), d.numberKey, d.countryKey).Scan(&id); err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	return documentProof.Audit(ctx, tx, "customers.kyc_document", id, nil)
}

// changeProof covers the KYC history.
var changeProof = records.Proof{Type: "kyc_changes", From: "kyc_changes", Key: "id", Read: readChange}

const selectChange = `
	SELECT from_status, to_status, verification_level, reason, changed_at, changed_by, customer_id, changes_sealed, decision_id
	FROM kyc_changes
	WHERE id = $1`

func readChange(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	var c Change
	var from, to, level, customerID, changes string
	err := q.QueryRow(ctx, selectChange, id).Scan(&from, &to, &level, &c.Reason, &c.ChangedAt, &c.ChangedBy, &customerID, &changes, &c.decisionID)
	c.From, c.To, c.VerificationLevel = Status(from), Status(to), Level(level)
	return store.Record{Answer: c, Stored: map[string]any{"customer_id": customerID, "changes": changes, "decision_id": c.decisionID}}, err
}
