package customers

import (
	"context"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/evidence"
	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Lengths in characters.
const (
	maxName       = 100
	maxStreet     = 200
	maxCity       = 100
	maxPostalCode = 20
	maxExternalID = 200
)

// OneInput is the id of a customer.
type OneInput struct {
	ID string `path:"id"`
}

// ListInput are the parameters of the list.
type ListInput struct {
	Query list.Params `query:"*"`
	Text  list.Words  `query:"q"`
}

// Validate checks the searched text.
func (in *ListInput) Validate(v *apierr.Fields) { in.Text.Validate(v) }

// CreateInput contains the data of a new customer. Names and e-mail address are required; last_name is the name of a business.
type CreateInput struct {
	Type        string         `json:"type" enum:"individual,business" default:"individual"`
	FirstName   string         `json:"first_name" maxLength:"100" required:"false" doc:"Required for an individual. - for a person with one name only, which is the last name."`
	LastName    string         `json:"last_name" maxLength:"100" doc:"The name of a business."`
	Email       string         `json:"email"`
	Phone       string         `json:"phone" doc:"With country code, or a Swiss number; stored as E.164."`
	DateOfBirth string         `json:"date_of_birth" format:"date"`
	Nationality string         `json:"nationality" doc:"ISO 3166-1 alpha-3, XKX for Kosovo, or a code of ICAO 9303-3 such as XXA for a stateless person."`
	Address     *Address       `json:"address"`
	Metadata    jsontext.Value `json:"metadata"`

	customer Customer
}

// Validate checks all data and prepares the customer. It compares dates with the day of the request.
func (in *CreateInput) Validate(ctx context.Context, v *apierr.Fields) {
	in.customer = in.check(v, types.DateOf(endpoint.Of(ctx).Now.UTC()))
}

func (in *CreateInput) check(v *apierr.Fields, today types.Date) Customer {
	if in.Type == "" {
		in.Type = Individual
	}
	c := Customer{
		Type:     validate.OneOf(v, "type", in.Type, Individual, Business),
		LastName: validate.Required(v, "last_name", in.LastName, maxName),
		Metadata: jsontext.Value(validate.Metadata(v, "metadata", in.Metadata)),
	}
	if in.Type == Business {
		c.FirstName = validate.Line(v, "first_name", in.FirstName, maxName)
	} else {
		c.FirstName = types.FirstName(validate.Required(v, "first_name", in.FirstName, maxName))
	}
	if in.Email == "" {
		v.Add("email", "invalid.required")
	}
	c.Email = validate.Parsed(v, "email", in.Email, types.ParseEmail).String()
	c.Phone = types.NilIfEmpty(validate.Parsed(v, "phone", in.Phone, types.ParsePhone).String())
	c.DateOfBirth = validate.Parsed(v, "date_of_birth", in.DateOfBirth, types.ParseDate)
	if c.DateOfBirth.After(today) {
		v.Add("date_of_birth", "invalid.date_future")
	}
	c.Nationality = types.NilIfEmpty(validate.Parsed(v, "nationality", in.Nationality, types.ParseCountry).String())
	c.Address = checkAddress(v, in.Address)
	return c
}

func checkAddress(v *apierr.Fields, a *Address) *Address {
	if a == nil {
		return nil
	}
	checked := Address{
		Street:     validate.Line(v, "address.street", a.Street, maxStreet),
		City:       validate.Line(v, "address.city", a.City, maxCity),
		PostalCode: validate.Line(v, "address.postal_code", a.PostalCode, maxPostalCode),
		Country:    a.Country,
	}
	validate.Parsed(v, "address.country", a.Country, types.CountryOf)
	return &checked
}

// fromMetadata returns metadata.language if it is a supported language, and metadata.external_id if it is a text of at most
// maxExternalID characters. It returns empty texts otherwise.
func (c Customer) fromMetadata() (language, externalID string) {
	var metadata struct {
		Language   jsontext.Value `json:"language"`
		ExternalID jsontext.Value `json:"external_id"`
	}
	if len(c.Metadata) <= len("{}") || json.Unmarshal(c.Metadata, &metadata) != nil {
		return "", ""
	}
	if parsed, err := types.ParseLanguage(textOf(metadata.Language)); err == nil {
		language = parsed.String()
	}
	externalID, err := types.Line(textOf(metadata.ExternalID), maxExternalID)
	if err != nil {
		externalID = ""
	}
	return language, externalID
}

// textOf returns the text that a JSON value is, and an empty text for another value.
func textOf(value jsontext.Value) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return ""
	}
	return text
}

// UpdateInput contains the members of a customer to replace. Missing members keep their values; null or "" removes an
// optional value.
type UpdateInput struct {
	ID          string                            `path:"id"`
	Type        endpoint.Optional[string]         `json:"type" enum:"individual,business"`
	FirstName   endpoint.Optional[string]         `json:"first_name" maxLength:"100"`
	LastName    endpoint.Optional[string]         `json:"last_name" maxLength:"100"`
	Email       endpoint.Optional[string]         `json:"email"`
	Phone       endpoint.Optional[string]         `json:"phone"`
	DateOfBirth endpoint.Optional[string]         `json:"date_of_birth" format:"date"`
	Nationality endpoint.Optional[string]         `json:"nationality"`
	Address     endpoint.Optional[*Address]       `json:"address"`
	Metadata    endpoint.Optional[jsontext.Value] `json:"metadata"`
}

// Validate checks the members that are given, as far as their rules do not depend on others.
func (in *UpdateInput) Validate(ctx context.Context, v *apierr.Fields) {
	given := map[string]bool{
		"type": in.Type.Given, "first_name": in.FirstName.Given, "last_name": in.LastName.Given, "email": in.Email.Given, "phone": in.Phone.Given,
		"date_of_birth": in.DateOfBirth.Given, "nationality": in.Nationality.Given, "address": in.Address.Given, "metadata": in.Metadata.Given,
	}
	alone := in.over(CreateInput{Type: Business}) // which may have no first name
	var problems apierr.Fields
	alone.check(&problems, types.DateOf(endpoint.Of(ctx).Now.UTC()))
	validate.Given(v, &problems, given)
}

// over returns the data of a customer with the members that are given.
func (in *UpdateInput) over(c CreateInput) CreateInput {
	return CreateInput{
		Type:        in.Type.Or(c.Type),
		FirstName:   in.FirstName.Or(c.FirstName),
		LastName:    in.LastName.Or(c.LastName),
		Email:       in.Email.Or(c.Email),
		Phone:       in.Phone.Or(c.Phone),
		DateOfBirth: in.DateOfBirth.Or(c.DateOfBirth),
		Nationality: in.Nationality.Or(c.Nationality),
		Address:     in.Address.Or(c.Address),
		Metadata:    in.Metadata.Or(c.Metadata),
	}
}

// apply returns the customer with the changes. It checks all members by the rules for a new customer, because the rules depend
// on each other.
func (in *UpdateInput) apply(before Customer, today types.Date) (Customer, error) {
	merged := in.over(CreateInput{Type: before.Type, FirstName: before.FirstName, LastName: before.LastName, Email: before.Email,
		Phone: types.EmptyIfNil(before.Phone), DateOfBirth: before.DateOfBirth.String(), Nationality: types.EmptyIfNil(before.Nationality),
		Address: before.Address, Metadata: before.Metadata})
	var problems apierr.Fields
	c := merged.check(&problems, today)
	c.ID, c.KYCStatus, c.VerificationLevel, c.CreatedAt = before.ID, before.KYCStatus, before.VerificationLevel, before.CreatedAt
	c.createdBy, c.byStaff, c.proven, c.verifiedAt = before.createdBy, before.byStaff, before.proven, before.verifiedAt
	return c, problems.Err()
}

// prove derives what is proven after a change by the caller. Values that staff write are proven, and those of others are claimed. A value that
// the change leaves as it was stays what it was: a form sends all members again.
func (c *Customer) prove(before Customer, byStaff bool) {
	if c.Email != before.Email {
		c.proven.email = byStaff
	}
	if types.EmptyIfNil(c.Phone) != types.EmptyIfNil(before.Phone) {
		c.proven.phone = byStaff && c.Phone != nil
	}
	if c.identity() != before.identity() {
		wrote := func(now, was string) bool { return now != was || now == "" }
		c.proven.identity = byStaff && (before.proven.identity || wrote(c.FirstName, before.FirstName) && wrote(c.LastName, before.LastName))
	}
	c.ExternalID = before.ExternalID
	_, wrote := c.fromMetadata()
	if _, had := before.fromMetadata(); byStaff && wrote != had {
		c.ExternalID = wrote
	}
	if !byStaff && c.ExternalID != "" && wrote != c.ExternalID { // it is the bank's: others do not change it
		c.Metadata = withExternalIDOf(c.Metadata, c.ExternalID)
	}
}

// withExternalIDOf returns metadata, which are an object, with an external id in the place of another.
func withExternalIDOf(metadata jsontext.Value, externalID string) jsontext.Value {
	members := map[string]jsontext.Value{}
	quoted, err := jsontext.AppendQuote(nil, externalID)
	if err == nil {
		err = json.Unmarshal(metadata, &members)
	}
	if err != nil {
		return metadata
	}
	members["external_id"] = quoted
	if with, err := json.Marshal(members, json.Deterministic(true)); err == nil {
		return with
	}
	return metadata
}

const (
	selectWithoutExternalID = `
		SELECT id, metadata FROM customers
		WHERE id > $1 AND external_id = '' AND metadata LIKE '%"external_id"%' AND by_staff = TRUE AND version = 1 ORDER BY id LIMIT $2`

	setExternalID = `UPDATE customers SET external_id = $2 WHERE id = $1 AND external_id = ''`
)

// fillExternalIDs computes the external ids of customers that staff have recorded by earlier versions, and that were not changed since:
// their metadata is as staff wrote it. It may be interrupted and run again.
func (s *Service) fillExternalIDs(ctx context.Context) error {
	return records.Fill(ctx, s.db, selectWithoutExternalID, setExternalID, func(row records.Row) (id string, args []any, err error) {
		var c Customer
		err = row.Scan(&id, (*[]byte)(&c.Metadata))
		if _, external := c.fromMetadata(); external != "" {
			args = []any{external}
		}
		return id, args, err
	})
}

const withExternalID = `external_id = $2 AND external_id <> '' AND erased_at IS NULL`

// findExternal returns the ids of the customers to which staff gave an external id, of those that the caller may list, at most two.
func findExternal(ctx context.Context, q store.Querier, externalID evidence.Proven[string]) ([]string, error) {
	found, err := table.Find(ctx, q, 2, withExternalID, externalID.Value())
	ids := make([]string, len(found))
	for i, c := range found {
		ids[i] = c.ID
	}
	return ids, err
}

// addExternalID returns metadata with an external id. ok is false if the metadata is no object, or has another external id.
func addExternalID(metadata jsontext.Value, externalID string) (with jsontext.Value, ok bool) {
	with = metadata.Clone()
	if len(with) == 0 {
		with = jsontext.Value("{}")
	}
	if with.Kind() != '{' || with.Compact() != nil {
		return metadata, false
	}
	_, known := Customer{Metadata: with}.fromMetadata()
	if known == externalID {
		return with, true
	}
	if known != "" {
		return metadata, false
	}
	quoted, err := jsontext.AppendQuote(nil, externalID)
	if err != nil {
		return metadata, false
	}
	body := with[:len(with)-1]
	if len(body) > 1 {
		body = append(body, ',')
	}
	with = append(append(append(body, `"external_id":`...), quoted...), '}')
	return with, with.IsValid()
}
