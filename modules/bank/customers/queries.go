package customers

import (
	"context"
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
	kyc_status, verification_level, verified_at, metadata, created_at, created_by, updated_at, version, erased_at`

const insertStatement = `
	INSERT INTO customers (
		id, type, first_name, first_name_key, last_name, last_name_key, email, email_key, phone, date_of_birth, nationality,
		has_address, street, city, city_key, postal_code, country,
		kyc_status, verification_level, metadata, language, created_at, created_by, updated_at, updated_by, version, first_name_order, last_name_order,
		external_id)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $22, $23, 1, $24, $25, $26)`

const updateStatement = `
	UPDATE customers SET
		type = $2, first_name = $3, first_name_key = $4, last_name = $5, last_name_key = $6, email = $7, email_key = $8,
		phone = $9, date_of_birth = $10, nationality = $11,
		has_address = $12, street = $13, city = $14, city_key = $15, postal_code = $16, country = $17,
		metadata = $18, language = $19, updated_at = $20, updated_by = $21, version = $22,
		first_name_order = $23, last_name_order = $24, external_id = $25
	WHERE id = $1`

var table = &records.Table[Customer]{
	Type: access.Customers, From: "customers", Columns: columns, Scan: scanCustomer,
	Relations: []records.Relation{records.Created}, Missing: apierr.CustomerNotFound,
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
		&c.CreatedAt, &c.createdBy, &c.UpdatedAt, &c.version, &c.ErasedAt)
	if hasAddress {
		c.Address = &a
	}
	return c, err
}

// searchKeys are the folded columns that searches use, the language and the external id. They are computed before the transaction, to
// keep it short.
type searchKeys struct {
	firstName, lastName, email, city, language, externalID string
	firstNameOrder, lastNameOrder                          string // see types.SortKey
}

func (c Customer) searchKeys() searchKeys {
	language, externalID := c.fromMetadata()
	return searchKeys{firstName: types.Fold(c.FirstName), lastName: types.Fold(c.LastName), email: types.Email(c.Email).Key(),
		city: types.Fold(c.address().City), language: language, externalID: externalID,
		firstNameOrder: types.SortKey(c.FirstName), lastNameOrder: types.SortKey(c.LastName)}
}

// insertCustomer writes a new customer. It binds pointers to the texts: an interface with a text would be allocated.
func insertCustomer(ctx context.Context, tx *store.Tx, c *Customer, d *searchKeys) error {
	a := c.address()
	_, err := tx.Exec(ctx, insertStatement, &c.ID, &c.Type, &c.FirstName, &d.firstName, &c.LastName, &d.lastName, &c.Email, &d.email,
		c.Phone, dateColumn(c.DateOfBirth), c.Nationality, c.Address != nil, &a.Street, &a.City, &d.city, &a.PostalCode, &a.Country,
		(*string)(&c.KYCStatus), (*string)(&c.VerificationLevel), string(c.Metadata), &d.language, &c.CreatedAt, &c.createdBy,
		&d.firstNameOrder, &d.lastNameOrder, &d.externalID)
	return err
}

func updateCustomer(ctx context.Context, tx *store.Tx, c Customer, d searchKeys, by string) error {
	a := c.address()
	_, err := tx.Exec(ctx, updateStatement, c.ID, c.Type, c.FirstName, d.firstName, c.LastName, d.lastName, c.Email, d.email,
		c.Phone, dateColumn(c.DateOfBirth), c.Nationality, c.Address != nil, a.Street, a.City, d.city, a.PostalCode, a.Country,
		string(c.Metadata), d.language, c.UpdatedAt, by, c.version, d.firstNameOrder, d.lastNameOrder, d.externalID)
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

const (
	selectTexts = `SELECT id, first_name, last_name, email, phone, city FROM customers WHERE id IN (%s) AND erased_at IS NULL`

	selectTextIDs = `SELECT id FROM customers WHERE id > $1 ORDER BY id LIMIT $2`
)

// TextSources returns what finds customers: names, e-mail address, telephone number, city and id.
func (s *Service) TextSources() []find.Source {
	return []find.Source{{Name: source, IDs: selectTextIDs, Read: readTexts}}
}

func readTexts(ctx context.Context, q store.Querier, ids []string) ([]store.TextDocument, error) {
	return find.Documents(ctx, q, selectTexts, ids, func(row records.Row) (store.TextDocument, error) {
		var first, last, email, city string
		var phone *string
		d := store.TextDocument{Source: source}
		err := row.Scan(&d.ID, &first, &last, &email, &phone, &city)
		d.Record, d.Title = d.ID, find.Words(first, last)
		d.Body = append(find.Words(email, city), types.IDWords(d.ID)...)
		d.Body = append(d.Body, types.PhoneWords(types.EmptyIfNil(phone))...)
		return d, err
	})
}

// FindText returns the customers that match a text best, of those that the caller may read.
func (s *Service) FindText(ctx context.Context, text list.Words, limit int) ([]find.Hit, error) {
	found, err := customerList.Find(ctx, s.db, text.Search(source), limit, table.Visible(access.From(ctx)))
	hits := make([]find.Hit, len(found))
	for i, one := range found {
		hits[i] = find.Hit{ID: one.ID, Title: one.Row.name(), Subtitle: one.Row.Email, Score: one.Score}
	}
	return hits, err
}

// FillKeys computes the sort keys of names, and the external ids, of customers that earlier versions have stored. It runs regularly.
func (s *Service) FillKeys(ctx context.Context) error {
	if err := s.fillExternalIDs(ctx); err != nil {
		return err
	}
	return records.FillSortKeys(ctx, s.db, records.SortKeys{From: "customers", Names: []string{"first_name", "last_name"}})
}
