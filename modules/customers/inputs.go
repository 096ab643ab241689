package customers

import (
	"context"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/list"
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
	maxReason     = 1000
	maxNumber     = 64
	maxDocuments  = 20 // in one request
)

// OneInput names one customer.
type OneInput struct {
	ID string `path:"id"`
}

// ListInput are the parameters of the list.
type ListInput struct {
	Query list.Params `query:"*"`
}

// CreateInput are the data of a new customer. Names and e-mail are required; a business has its name in last_name.
type CreateInput struct {
	Type        string         `json:"type" enum:"individual,business" default:"individual"`
	FirstName   string         `json:"first_name" maxLength:"100" doc:"Needed for an individual."`
	LastName    string         `json:"last_name" maxLength:"100" doc:"Of a business: its name."`
	Email       string         `json:"email"`
	Phone       string         `json:"phone" doc:"With the country code; kept as E.164."`
	DateOfBirth string         `json:"date_of_birth" format:"date"`
	Nationality string         `json:"nationality" doc:"ISO 3166-1 alpha-3."`
	Address     *Address       `json:"address"`
	Metadata    jsontext.Value `json:"metadata"`

	customer Customer
}

// Validate checks all data and makes the customer of them. The day by which dates are judged is that of the request.
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
		c.FirstName = validate.Required(v, "first_name", in.FirstName, maxName)
	}
	if in.Email == "" {
		v.Add("email", "invalid.required")
	}
	c.Email = validate.Parsed(v, "email", in.Email, types.ParseEmail).String()
	c.Phone = optional(validate.Parsed(v, "phone", in.Phone, types.ParsePhone).String())
	c.DateOfBirth = validate.Parsed(v, "date_of_birth", in.DateOfBirth, types.ParseDate)
	if c.DateOfBirth.After(today) {
		v.Add("date_of_birth", "invalid.date_future")
	}
	c.Nationality = optional(validate.Parsed(v, "nationality", in.Nationality, types.ParseCountry).String())
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

// optional is nil for the empty text.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// language is the language in which the customer is written to: metadata.language, if it is one we have.
func (c Customer) language() string {
	var metadata struct {
		Language jsontext.Value `json:"language"`
	}
	var text string
	if json.Unmarshal(c.Metadata, &metadata) != nil || json.Unmarshal(metadata.Language, &text) != nil {
		return ""
	}
	parsed, err := types.ParseLanguage(text)
	if err != nil {
		return ""
	}
	return parsed.String()
}

// UpdateInput are the data of a customer that are to be replaced. What is not given stays; null or "" removes what may
// be missing.
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

// apply gives the customer with the changes. The rules are those of a new customer, because they hang together.
func (in UpdateInput) apply(before Customer, today types.Date) (Customer, error) {
	merged := CreateInput{
		Type:        in.Type.Or(before.Type),
		FirstName:   in.FirstName.Or(before.FirstName),
		LastName:    in.LastName.Or(before.LastName),
		Email:       in.Email.Or(before.Email),
		Phone:       in.Phone.Or(text(before.Phone)),
		DateOfBirth: in.DateOfBirth.Or(before.DateOfBirth.String()),
		Nationality: in.Nationality.Or(text(before.Nationality)),
		Address:     in.Address.Or(before.Address),
		Metadata:    in.Metadata.Or(before.Metadata),
	}
	var problems apierr.Fields
	c := merged.check(&problems, today)
	c.ID, c.KYCStatus, c.VerificationLevel, c.CreatedAt = before.ID, before.KYCStatus, before.VerificationLevel, before.CreatedAt
	c.createdBy, c.verifiedAt = before.createdBy, before.verifiedAt
	return c, problems.Err()
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// DocumentInput is a document that is handed in.
type DocumentInput struct {
	Type       string `json:"type" enum:"passport,identity_card,residence_permit,driving_licence,proof_of_address,other" required:"true"`
	Number     string `json:"number" maxLength:"64" required:"true"`
	ExpiryDate string `json:"expiry_date" format:"date" doc:"Needed for documents that prove an identity."`
	Country    string `json:"country" doc:"ISO 3166-1, two or three letters."`
}

// submitted is a checked document.
type submitted struct {
	kind       DocumentType
	number     string
	expiryDate types.Date
	country    string
	countryKey string
}

// SubmitInput are the documents handed in and, from a reviewer, the time at which the customer was verified.
type SubmitInput struct {
	ID         string          `path:"id"`
	VerifiedAt *string         `json:"verified_at" format:"date-time" example:"2026-01-31T08:15:30.123Z" doc:"From a reviewer: the customer was verified then. From others it is ignored."`
	Documents  []DocumentInput `json:"documents" maxItems:"20" required:"false"`

	verifiedAt *store.Time
	documents  []submitted
}

// Validate checks the documents. Whether they have expired is checked in the transaction, by the store's clock.
func (in *SubmitInput) Validate(v *apierr.Fields) {
	if in.VerifiedAt != nil && *in.VerifiedAt != "" {
		at, err := store.ParseTime(*in.VerifiedAt)
		if err != nil {
			v.Add("verified_at", "invalid.datetime")
		}
		in.verifiedAt = &at
	}
	if len(in.Documents) == 0 && in.verifiedAt == nil {
		v.Add("documents", "invalid.required")
	}
	if len(in.Documents) > maxDocuments {
		v.Add("documents", "invalid.max_items", apierr.Args{"Max": maxDocuments})
		return
	}
	for i, d := range in.Documents {
		in.documents = append(in.documents, d.check(v, "documents."+strconv.Itoa(i)+"."))
	}
}

func (d DocumentInput) check(v *apierr.Fields, at string) submitted {
	checked := submitted{
		kind:       DocumentType(validate.OneOf(v, at+"type", d.Type, documentTypes...)),
		number:     validate.Required(v, at+"number", d.Number, maxNumber),
		expiryDate: validate.Parsed(v, at+"expiry_date", d.ExpiryDate, types.ParseDate),
		country:    d.Country,
		countryKey: validate.Parsed(v, at+"country", d.Country, types.CountryOf).String(),
	}
	if checked.kind.identifies() && d.ExpiryDate == "" {
		v.Add(at+"expiry_date", "invalid.required")
	}
	return checked
}

// checkDates refuses expired documents and a verification in the future.
func (in SubmitInput) checkDates(today types.Date, now store.Time) error {
	var problems apierr.Fields
	for i, d := range in.documents {
		if !d.expiryDate.IsZero() && d.expiryDate.Before(today) {
			problems.Add("documents."+strconv.Itoa(i)+".expiry_date", "customers.document_expired")
		}
	}
	if in.verifiedAt != nil && *in.verifiedAt > now {
		problems.Add("verified_at", "invalid.date_future")
	}
	return problems.Err()
}

// DecideInput is the decision of a reviewer.
type DecideInput struct {
	ID                string `path:"id"`
	KYCStatus         Status `json:"kyc_status" required:"false" example:"verified"`
	VerificationLevel Level  `json:"verification_level" example:"standard"`
	Reason            string `json:"reason" maxLength:"1000"`
}

// Validate checks that the decision says something that exists.
func (in *DecideInput) Validate(v *apierr.Fields) {
	if in.KYCStatus == "" && in.VerificationLevel == "" {
		v.Add("kyc_status", "invalid.required")
	}
	if in.KYCStatus != "" {
		validate.OneOf(v, "kyc_status", string(in.KYCStatus), in.KYCStatus.Values()...)
	}
	if in.VerificationLevel != "" {
		validate.OneOf(v, "verification_level", string(in.VerificationLevel), in.VerificationLevel.Values()...)
	}
	in.Reason = validate.Text(v, "reason", in.Reason, maxReason)
}
