package customers

import (
	"context"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/evidence"
	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// The columns of a file of customers with the external id. The second one is the path of the member.
const (
	externalColumn       = "external_id"
	externalMemberColumn = "metadata." + externalColumn
	metadataColumn       = "metadata"
	addressColumns       = "address."
)

// ImportColumns returns the columns that a file of customers may have, and whether it must have them: those of the list of customers as a
// table, and the external id. Members that Kontor decides itself have no effect: ids, times, and the state of the verification.
func ImportColumns() map[string]bool {
	return map[string]bool{
		"id": false, "type": false, "first_name": false, "last_name": true, "email": true, "phone": false, "date_of_birth": false,
		"nationality": false, "address.street": false, "address.city": false, "address.postal_code": false, "address.country": false,
		"kyc_status": false, "verification_level": false, metadataColumn: false, "created_at": false, "updated_at": false, "erased_at": false,
		externalColumn: false, externalMemberColumn: false,
	}
}

// Imported is a row of a file of customers that was checked.
type Imported struct {
	s          *Service
	fields     UpdateInput // of the columns that the file has
	created    *newCustomer
	externalID *evidence.Proven[string] // nil for a row without one, and for callers who do not act for the bank: theirs are claimed
}

// PrepareImport checks a row, by its columns, as the data of a new customer of the caller. It returns apierr.InvalidInput with the
// columns that are wrong.
func (s *Service) PrepareImport(ctx context.Context, cells map[string]string) (*Imported, error) {
	var problems apierr.Fields
	in := CreateInput{
		Type: cells["type"], FirstName: cells["first_name"], LastName: cells["last_name"], Email: cells["email"], Phone: cells["phone"],
		DateOfBirth: cells["date_of_birth"], Nationality: cells["nationality"], Metadata: jsontext.Value(cells[metadataColumn]),
		Address: importedAddress(cells),
	}
	if len(in.Metadata) > 0 && !in.Metadata.IsValid() { // a request with repeated members is refused before its members are read
		problems.Add(metadataColumn, "invalid.json")
		in.Metadata = nil
	}
	externalID := importedExternalID(&problems, cells)
	if externalID != "" {
		var ok bool
		if in.Metadata, ok = addExternalID(in.Metadata, externalID); !ok {
			problems.Add(externalColumn, "imports.other_external_id")
		}
	}
	c := in.check(&problems, types.DateOf(s.db.Now().Std()))
	if err := problems.Err(); err != nil {
		return nil, err
	}
	n := s.newCustomer(ctx, c)
	if externalID == "" { // the column metadata may come from a list, with what customers claim
		n.ExternalID = ""
	}
	n.after = s.db.Digest(audited(n.Customer))
	row := &Imported{s: s, fields: importedFields(in, cells), created: n}
	if n.ExternalID != "" {
		id := evidence.Recorded(n.ExternalID)
		row.externalID = &id
	}
	return row, nil
}

// importedExternalID returns the external id in a column of its own.
func importedExternalID(v *apierr.Fields, cells map[string]string) string {
	column := externalColumn
	if cells[column] == "" {
		column = externalMemberColumn
	} else if other := cells[externalMemberColumn]; other != "" && other != cells[column] {
		v.Add(externalColumn, "imports.other_external_id")
	}
	return validate.Line(v, column, cells[column], maxExternalID)
}

// importedAddress returns the address of a row, or nil if all of its cells are empty.
func importedAddress(cells map[string]string) *Address {
	a := Address{Street: cells[addressColumns+"street"], City: cells[addressColumns+"city"], PostalCode: cells[addressColumns+"postal_code"],
		Country: cells[addressColumns+"country"]}
	if a == (Address{}) {
		return nil
	}
	return &a
}

// importedFields returns the members that a row replaces: those of the columns that the file has. An empty cell removes the value.
func importedFields(in CreateInput, cells map[string]string) UpdateInput {
	text := func(column, value string) endpoint.Optional[string] {
		_, given := cells[column]
		return endpoint.Optional[string]{Given: given, Value: value}
	}
	u := UpdateInput{
		FirstName: text("first_name", in.FirstName), LastName: text("last_name", in.LastName), Email: text("email", in.Email),
		Phone: text("phone", in.Phone), DateOfBirth: text("date_of_birth", in.DateOfBirth), Nationality: text("nationality", in.Nationality),
	}
	if cells["type"] != "" {
		u.Type = text("type", in.Type)
	}
	for column := range cells {
		u.Address.Given = u.Address.Given || strings.HasPrefix(column, addressColumns)
	}
	u.Address.Value = in.Address
	if _, given := cells[metadataColumn]; given {
		u.Metadata = endpoint.Optional[jsontext.Value]{Given: true, Value: in.Metadata}
		if len(in.Metadata) == 0 {
			u.Metadata.Value = jsontext.Value("{}")
		}
	}
	return u
}

// ExternalID returns the external id of the row; empty: none.
func (i *Imported) ExternalID() string {
	if i.externalID == nil {
		return ""
	}
	return i.externalID.Value()
}

// Same returns the ids of the customers with the external id of the row that the caller may list, at most two.
func (i *Imported) Same(ctx context.Context, q store.Querier) ([]string, error) {
	if i.externalID == nil {
		return nil, nil
	}
	return findExternal(ctx, q, *i.externalID)
}

// Create creates the customer, as [Service.Create] does. It writes nothing when it returns apierr.QuotaExceeded.
func (i *Imported) Create(ctx context.Context, tx *store.Tx) (id string, err error) {
	return i.created.ID, i.s.insert(ctx, tx, i.created)
}

// Fits returns apierr.QuotaExceeded if Create would return it after a number of other customers with a weight.
func (i *Imported) Fits(ctx context.Context, q store.Querier, others, weight int64) error {
	return i.s.quota.Check(ctx, q, access.Customers, others+1, weight+i.Weight())
}

// Weight returns the bytes of the quota that the customer uses.
func (i *Imported) Weight() int64 { return i.created.weight() }

// Update replaces the members of a customer that the file has columns for, as [Service.Update] does, with a further write in its
// transaction. It returns the errors of Service.Update.
func (i *Imported) Update(ctx context.Context, id string, and func(tx *store.Tx) error) error {
	in := i.fields
	in.ID = id
	_, err := i.s.update(ctx, in, and)
	return err
}

// CheckUpdate returns the error that Update would return.
func (i *Imported) CheckUpdate(ctx context.Context, q store.Querier, id string) error {
	before, err := table.Get(ctx, q, id, access.Update)
	if err != nil {
		return err
	}
	if before.Erased() {
		return apierr.RecordErased
	}
	after, err := i.fields.apply(before, types.DateOf(i.s.db.Now().Std()))
	if err == nil {
		_, err = i.s.prepareUpdate(ctx, q, before, after)
	}
	return err
}

// PrepareImports prepares the customers that earlier versions have stored for the comparison with the rows of a file.
func (s *Service) PrepareImports(ctx context.Context) error { return s.fillExternalIDs(ctx) }

// Readable returns which of the customers the caller may read.
func (s *Service) Readable(ctx context.Context, ids []string) (map[string]bool, error) {
	readable := map[string]bool{}
	for part := range slices.Chunk(ids, 200) {
		found, err := table.Find(ctx, s.db, len(part), `customers.id IN (`+store.In(2, len(part))+`)`, store.AppendIn(nil, part)...)
		if err != nil {
			return nil, err
		}
		for _, c := range found {
			readable[c.ID] = true
		}
	}
	return readable, nil
}
