package customers

import (
	"context"
	"fmt"
	"strings"

	"kontor/modules/kit/find"
	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

const columns = `
	id, type, first_name, last_name, email, phone, date_of_birth, nationality,
	has_address, street, city, postal_code, country,
	kyc_status, verification_level, verified_at, metadata, created_at, created_by, updated_at, version, erased_at,
	external_id, by_staff, email_proven, phone_proven, identity_proven`

const insertStatement = `
	INSERT INTO customers (
		id, type, first_name, first_name_key, last_name, last_name_key, email, email_key, phone, date_of_birth, nationality,
		has_address, street, city, city_key, postal_code, country,
		kyc_status, verification_level, metadata, language, created_at, created_by, updated_at, updated_by, version, first_name_order, last_name_order,
		external_id, by_staff, email_proven, phone_proven, identity_proven)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $22, $23, 1, $24, $25, $26,
		$27, $28, $29, $30)`

const updateStatement = `
	UPDATE customers SET
		type = $2, first_name = $3, first_name_key = $4, last_name = $5, last_name_key = $6, email = $7, email_key = $8,
		phone = $9, date_of_birth = $10, nationality = $11,
		has_address = $12, street = $13, city = $14, city_key = $15, postal_code = $16, country = $17,
		metadata = $18, language = $19, updated_at = $20, updated_by = $21, version = $22,
		first_name_order = $23, last_name_order = $24, external_id = $25, email_proven = $26, phone_proven = $27, identity_proven = $28
	WHERE id = $1`

var table = &records.Table[Customer]{
	Type: access.Customers, From: "customers", Columns: columns, Scan: scanCustomer,
	Relations: []records.Relation{records.Creator(access.Customers, "customers")}, Missing: apierr.CustomerNotFound,
}

var customerList = list.New(list.Source[Customer]{
	From: "customers", Columns: columns, ID: "id", Created: "created_at", Tables: []string{"customers"}, Scan: scanCustomer,
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "type", Type: list.Text, Column: "type", Key: "type", Few: true},
		{Name: "first_name", Type: list.Text, Column: "first_name", Key: "first_name_key", Order: "first_name_order"},
		{Name: "last_name", Type: list.Text, Column: "last_name", Key: "last_name_key", Order: "last_name_order", Index: list.ThenID},
		{Name: "email", Type: list.Text, Column: "email", Key: "email_key", Index: list.ThenID},
		{Name: "phone", Type: list.Text, Column: "phone", Key: "phone", Null: true},
		{Name: "date_of_birth", Type: list.Date, Column: "date_of_birth", Null: true},
		{Name: "nationality", Type: list.Text, Column: "nationality", Key: "nationality", Fold: strings.ToUpper, Null: true, Few: true},
		{Name: "city", Type: list.Text, Column: "city", Key: "city_key", Few: true},
		{Name: "postal_code", Type: list.Text, Column: "postal_code"},
		{Name: "country", Type: list.Text, Column: "country", Few: true},
		{Name: "kyc_status", Type: list.Text, Column: "kyc_status", Key: "kyc_status", Index: list.ThenCreated, Few: true},
		{Name: "verification_level", Type: list.Text, Column: "verification_level", Key: "verification_level", Few: true},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "created_by", Type: list.UUID, Column: "created_by", Index: list.ThenCreated},
		{Name: "updated_at", Type: list.Time, Column: "updated_at"},
	},
})

func scanCustomer(row records.Row) (Customer, error) {
	var c Customer
	var hasAddress bool
	var a Address
	err := row.Scan(&c.ID, &c.Type, &c.FirstName, &c.LastName, &c.Email, &c.Phone, &c.DateOfBirth, &c.Nationality,
		&hasAddress, &a.Street, &a.City, &a.PostalCode, &a.Country,
		(*string)(&c.KYCStatus), (*string)(&c.VerificationLevel), &c.verifiedAt, (*[]byte)(&c.Metadata),
		&c.CreatedAt, &c.createdBy, &c.UpdatedAt, &c.version, &c.ErasedAt,
		&c.ExternalID, &c.byStaff, &c.proven.email, &c.proven.phone, &c.proven.identity)
	if hasAddress {
		c.Address = &a
	}
	return c, err
}

// searchKeys are the folded columns that searches use, and the language. They are computed before the transaction, to keep it short.
type searchKeys struct {
	firstName, lastName, email, city, language string
	firstNameOrder, lastNameOrder              string // see types.SortKey
}

func (c Customer) searchKeys() searchKeys {
	language, _ := c.fromMetadata()
	return searchKeys{firstName: types.Fold(c.FirstName), lastName: types.Fold(c.LastName), email: types.Email(c.Email).Key(),
		city: types.Fold(c.address().City), language: language,
		firstNameOrder: types.SortKey(c.FirstName), lastNameOrder: types.SortKey(c.LastName)}
}

// insertCustomer writes a new customer. It binds pointers to the texts: an interface with a text would be allocated.
func insertCustomer(ctx context.Context, tx *store.Tx, c *Customer, d *searchKeys) error {
	a := c.address()
	_, err := tx.Exec(ctx, insertStatement, &c.ID, &c.Type, &c.FirstName, &d.firstName, &c.LastName, &d.lastName, &c.Email, &d.email,
		c.Phone, dateColumn(c.DateOfBirth), c.Nationality, c.Address != nil, &a.Street, &a.City, &d.city, &a.PostalCode, &a.Country,
		(*string)(&c.KYCStatus), (*string)(&c.VerificationLevel), string(c.Metadata), &d.language, &c.CreatedAt, &c.createdBy,
		&d.firstNameOrder, &d.lastNameOrder, &c.ExternalID, c.byStaff, c.proven.email, c.proven.phone, c.proven.identity)
	return err
}

func updateCustomer(ctx context.Context, tx *store.Tx, c Customer, d searchKeys, by string) error {
	a := c.address()
	_, err := tx.Exec(ctx, updateStatement, c.ID, c.Type, c.FirstName, d.firstName, c.LastName, d.lastName, c.Email, d.email,
		c.Phone, dateColumn(c.DateOfBirth), c.Nationality, c.Address != nil, a.Street, a.City, d.city, a.PostalCode, a.Country,
		string(c.Metadata), d.language, c.UpdatedAt, by, c.version, d.firstNameOrder, d.lastNameOrder, c.ExternalID, c.proven.email, c.proven.phone, c.proven.identity)
	return err
}

var noAddress Address

// address returns the address, or an empty one. The result must not be changed.
func (c *Customer) address() *Address {
	if c.Address == nil {
		return &noAddress
	}
	return c.Address
}

// dateColumn returns a date as text, or NULL for the zero date.
func dateColumn(d types.Date) *string {
	if d.IsZero() {
		return nil
	}
	text := d.String()
	return &text
}

// source is the kind of documents that find customers.
const source = "customers"

// TextSources returns what finds customers: names, e-mail address, telephone number, city and id.
func (s *Service) TextSources() []find.Source {
	return []find.Source{{From: source, Columns: "id, first_name, last_name, email, phone, city", Where: "erased_at IS NULL", Scan: func(row list.Row, d *store.TextDocument) error {
		var first, last, email, city string
		var phone *string
		err := row.Scan(&d.ID, &first, &last, &email, &phone, &city)
		d.Record, d.Title = d.ID, find.Words(first, last)
		d.Body = append(find.Words(email, city), types.IDWords(d.ID)...)
		d.Body = append(d.Body, types.PhoneWords(types.EmptyIfNil(phone))...)
		return err
	}}}
}

// FindText returns the customers that match a text best, of those that the caller may read.
func (s *Service) FindText(ctx context.Context, text list.Words, limit int) ([]find.Hit, error) {
	found, err := customerList.Find(ctx, s.db, text.Search(source), limit, table.Visible(access.From(ctx)))
	return find.Hits(found, func(c Customer) find.Hit { return find.Hit{Title: c.name(), Subtitle: c.Email} }), err
}

// FillKeys computes the sort keys of names, and the external ids, of customers that earlier versions have stored. It runs regularly.
func (s *Service) FillKeys(ctx context.Context) error {
	if err := s.fillExternalIDs(ctx); err != nil {
		return err
	}
	return records.FillSortKeys(ctx, s.db, "customers", "first_name", "last_name")
}

const updateVerificationStatement = `
	UPDATE customers SET
		kyc_status = $2, verification_level = $3, verified_at = $4, updated_at = $5, updated_by = $6, version = $7, identity_proven = $8
	WHERE id = $1`

const selectDocuments = `
	SELECT id, type, ` + givenType + `, number_sealed, number_key, country, expiry_date, created_at, ` + countFiles + `
	FROM kyc_documents
	WHERE customer_id = $1
	ORDER BY created_at, id`

// givenType is the type of a document as it was given.
const givenType = `CASE WHEN kyc_documents.given_type = '' THEN kyc_documents.type ELSE kyc_documents.given_type END`

const countFiles = `(SELECT COUNT(*) FROM attached_files a WHERE a.record_id = kyc_documents.id AND a.record_type = 'kyc_documents')`

const upsertDocumentStatement = `
	INSERT INTO kyc_documents (
		id, customer_id, type, number_sealed, number_key, country, country_key, expiry_date, created_at, created_by, updated_at,
		given_type, late)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $9, $11, $12)
	ON CONFLICT (customer_id, type, number_key, country_key) DO UPDATE SET
		number_sealed = excluded.number_sealed, country = excluded.country, expiry_date = excluded.expiry_date,
		given_type = excluded.given_type, late = kyc_documents.late AND excluded.late,
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
	SELECT id, type, ` + givenType + `, number_key, country_key, expiry_date, ` + countFiles + ` FROM kyc_documents WHERE customer_id = $1`

const selectIdentitiesStatement = `SELECT name_hash, birth_hash FROM customer_identities WHERE customer_id = $1 AND proven = TRUE`

const insertIdentityStatement = `
	INSERT INTO customer_identities (customer_id, name_hash, birth_hash, until, proven)
	VALUES ($1, $2, $3, $4, $5)
	ON CONFLICT (customer_id, name_hash, birth_hash) DO UPDATE SET
		until = excluded.until, proven = customer_identities.proven OR excluded.proven`

const selectFormerAddresses = `SELECT digest FROM customer_addresses WHERE customer_id = $1 AND proven = TRUE`

const insertFormerAddress = `
	INSERT INTO customer_addresses (customer_id, digest, until, proven) VALUES ($1, $2, $3, $4)
	ON CONFLICT (customer_id, digest) DO UPDATE SET until = excluded.until, proven = customer_addresses.proven OR excluded.proven`

// selectExpired finds verified customers whose identity documents have all expired before the day $1. Documents that had
// expired whenever they were submitted end no verification.
const selectExpired = `
	SELECT c.id FROM customers c
	WHERE c.kyc_status = 'verified'
		AND EXISTS (SELECT 1 FROM kyc_documents d
			WHERE d.customer_id = c.id AND d.type IN ('passport', 'identity_card', 'residence_permit', 'driving_licence') AND NOT d.late)
		AND NOT EXISTS (SELECT 1 FROM kyc_documents d
			WHERE d.customer_id = c.id AND d.type IN ('passport', 'identity_card', 'residence_permit', 'driving_licence')
				AND (d.expiry_date IS NULL OR d.expiry_date >= $1))
	ORDER BY c.created_at, c.id
	LIMIT $2`

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
		c.UpdatedAt, by, c.version, c.proven.identity)
	return err
}

func upsertDocument(ctx context.Context, tx *store.Tx, d sealedDocument, by string) error {
	for _, older := range d.olderKeys {
		if _, err := tx.Exec(ctx, updateOlderNumberStatement, d.customerID, string(d.kind), older, d.countryKey, d.numberKey, d.number); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, upsertDocumentStatement, d.id, d.customerID, string(d.kind), d.number, d.numberKey, d.country, d.countryKey,
		dateColumn(d.expiryDate), tx.Now(), by, d.givenIfOther(), d.late)
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

// selectIdentities returns the former identities of a customer that were proven.
func selectIdentities(ctx context.Context, q store.Querier, customerID string) ([]identityHash, error) {
	return store.All(ctx, q, func(row store.Scanner) (h identityHash, err error) {
		err = row.Scan(&h.name, &h.birth)
		return h, err
	}, selectIdentitiesStatement, customerID)
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
	err := row.Scan(&c.id, (*string)(&c.From), (*string)(&c.To), (*string)(&c.VerificationLevel), &c.Reason, &c.ChangedAt, &c.ChangedBy, &c.sealed,
		&c.decisionID, &c.internal)
	return c, err
}

// Proofs declares how the audit trail reads the records of this module. Not covered are the columns updated_by of customers,
// because the audit entry of the update names the actor, warned_at of documents, and the sort keys of names. Nor are the open cases,
// which follow from the customers, except for who works on them.
func Proofs() []records.Proof {
	customers := table.Proof()
	customers.Form = 1 // with by_staff and what is proven
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
	return storedCustomer{c.verifiedAt, c.createdBy, c.version, k.firstName, k.lastName, k.email, k.city, k.language,
		c.byStaff, c.proven.email, c.proven.phone, c.proven.identity}
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

	ByStaff        bool `json:"by_staff"`
	EmailProven    bool `json:"email_proven"`
	PhoneProven    bool `json:"phone_proven"`
	IdentityProven bool `json:"identity_proven"`
}

const selectSearchKeys = `SELECT first_name_key, last_name_key, email_key, city_key, language FROM customers WHERE id = $1`

// readCustomer reads a customer with its search keys as they are stored. It does not compute them, so that a check finds
// wrong ones.
func readCustomer(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	c, err := table.Scan(q.QueryRow(ctx, `SELECT `+columns+` FROM customers WHERE id = $1`, id))
	if err != nil {
		return store.Record{}, err
	}
	s := storedCustomer{VerifiedAt: c.verifiedAt, CreatedBy: c.createdBy, Version: c.version, ByStaff: c.byStaff,
		EmailProven: c.proven.email, PhoneProven: c.proven.phone, IdentityProven: c.proven.identity}
	err = q.QueryRow(ctx, selectSearchKeys, id).Scan(&s.FirstName, &s.LastName, &s.Email, &s.City, &s.Language)
	return store.Record{Answer: c, Stored: s}, err
}

// documentProof covers documents. A keyed hash proves their numbers, so that a check decrypts nothing.
var documentProof = records.Proof{
	Type: "kyc_documents", From: "kyc_documents", Key: "id", Read: readDocument, Outside: map[string]string{"number": `""`, "expired": "false"},
}

const selectDocument = `
	SELECT id, type, ` + givenType + `, late, country, expiry_date, created_at, customer_id, number_key, country_key, created_by, updated_at
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

	// Documents of earlier versions have neither.
	Kind DocumentType `json:"kind,omitzero"` // unless it is the given type
	Late bool         `json:"late,omitzero"`
}

func readDocument(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	var d Document
	var s storedDocument
	err := q.QueryRow(ctx, selectDocument, id).Scan(&d.ID, (*string)(&s.Kind), &d.Type, &s.Late, &d.Country, &d.ExpiryDate, &d.CreatedAt,
		&s.CustomerID, &s.NumberKey, &s.CountryKey, &s.CreatedBy, &s.UpdatedAt)
	if string(s.Kind) == d.Type {
		s.Kind = ""
	}
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
	var customerID, changes string
	err := q.QueryRow(ctx, selectChange, id).Scan((*string)(&c.From), (*string)(&c.To), (*string)(&c.VerificationLevel), &c.Reason, &c.ChangedAt, &c.ChangedBy,
		&customerID, &changes, &c.decisionID)
	return store.Record{Answer: c, Stored: map[string]any{"customer_id": customerID, "changes": changes, "decision_id": c.decisionID}}, err
}
