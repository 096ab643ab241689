package payers

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/find"
	"kontor/modules/kit/list"
	"kontor/modules/kit/personal"
	"kontor/modules/kit/records"
	"kontor/modules/kit/recordtype"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Payer is the API's representation of a payer.
type Payer struct {
	ID         string         `json:"id"`
	CustomerID string         `json:"customer_id"`
	Email      *string        `json:"email"`
	Name       *string        `json:"name" doc:"The name of a person. A payer has a name, a company or both."`
	Company    *string        `json:"company" doc:"The name of a company."`
	Country    *string        `json:"country" pattern:"^[A-Z]{3}$" doc:"ISO 3166-1 alpha-3, XKX for Kosovo, or another code of three letters."`
	Active     bool           `json:"active"`
	Metadata   jsontext.Value `json:"metadata"`
	CreatedAt  store.Time     `json:"created_at"`
	CreatedBy  string         `json:"created_by"`
	ModifiedAt store.Time     `json:"modified_at"`
	ModifiedBy string         `json:"modified_by"`
	ErasedAt   *store.Time    `json:"erased_at,omitzero" doc:"When the personal data was erased; missing from all other payers."`
	Version    int64          `json:"-" column:"version"`
	ByStaff    bool           `json:"-" column:"by_staff"`
}

// ETag returns the version of the record.
func (p Payer) ETag() string { return endpoint.VersionTag(p.Version) }

// Erased reports whether the personal data was erased. The record does not change any more.
func (p Payer) Erased() bool { return p.ErasedAt != nil }

// EachUser names the creator and the last editor.
func (p Payer) EachUser(add func(id string)) {
	add(p.CreatedBy)
	add(p.ModifiedBy)
}

// Lengths in characters.
const (
	maxName    = 200
	maxCompany = 200
)

// payers declares the record type.
var payers = recordtype.New(recordtype.Declaration[Payer]{
	Type: access.Payers, From: "payers", Missing: apierr.PayerNotFound, Relations: []records.Relation{records.Creator(access.Payers, "payers")}, Form: 1,
	Holds:   "names, companies, addresses and metadata of those who pay for a customer",
	Section: personal.About{Name: "payers", Kind: personal.Customer}, Subject: "customer_id",
	Columns: []recordtype.Column{
		{Name: "customer_id", Public: "an id", Fixed: true, Parse: recordtype.Required(recordtype.Parsed(types.ParseID)), Field: &list.Field{Type: list.UUID}},
		{Name: "email", Personal: "NULL", Parse: recordtype.Parsed(types.ParseEmail), Words: recordtype.Body},
		{Name: "name", Personal: "''", Parse: recordtype.Line(maxName), Words: recordtype.Title},
		{Name: "company", Personal: "NULL", Parse: recordtype.Line(maxCompany), Words: recordtype.Title, Folded: true},
		{Name: "country", Personal: "NULL", Parse: recordtype.Parsed(types.ParseCountry),
			Field: &list.Field{Type: list.Text, Key: "country", Fold: strings.ToUpper, Null: true, Index: list.ThenCreated}},
		{Name: "active", Personal: "FALSE", Field: &list.Field{Type: list.Bool, Index: list.ThenCreated}},
		{Name: "metadata", Personal: "'{}'", Parse: recordtype.JSON, Weighs: true},
	},
	Hit: func(p Payer) find.Hit {
		company, name, email := types.EmptyIfNil(p.Company), types.EmptyIfNil(p.Name), types.EmptyIfNil(p.Email)
		hit := find.Hit{Title: cmp.Or(company, name), Parent: p.CustomerID, Subtitle: email}
		if company != "" {
			hit.Subtitle = cmp.Or(name, email)
		}
		return hit
	},
})

// Proofs declares how the audit trail reads the records of this module.
func Proofs() []records.Proof { return []records.Proof{payers.Proof()} }

// CreateInput contains the data of a new payer. The customer is required, and so is a name or a company.
type CreateInput struct {
	CustomerID string         `json:"customer_id"`
	Email      string         `json:"email"`
	Name       string         `json:"name" required:"false" doc:"A name or a company is required."`
	Company    string         `json:"company" required:"false"`
	Country    string         `json:"country" pattern:"^[A-Z]{3}$"`
	Metadata   jsontext.Value `json:"metadata"`

	payer Payer
}

// Validate checks all data and prepares the payer. The transaction checks that the customer exists.
func (in *CreateInput) Validate(v *apierr.Fields) {
	in.payer = payers.Parse(v, in, Payer{Active: true})
	in.payer.checkName(v)
}

// checkName checks that the payer has a name or a company.
func (p Payer) checkName(v *apierr.Fields) {
	if p.Name == nil && p.Company == nil {
		v.Add("name", "payers.name_or_company") // ignored if name already has an error
	}
}

// UpdateInput contains the members of a payer to replace. Missing members keep their values; null or "" removes an optional
// value.
type UpdateInput struct {
	ID       string                            `path:"id"`
	Email    endpoint.Optional[string]         `json:"email"`
	Name     endpoint.Optional[string]         `json:"name"`
	Company  endpoint.Optional[string]         `json:"company"`
	Country  endpoint.Optional[string]         `json:"country" pattern:"^[A-Z]{3}$"`
	Active   *bool                             `json:"active" doc:"true reactivates an archived payer. false is ignored: DELETE archives a payer."`
	Metadata endpoint.Optional[jsontext.Value] `json:"metadata"`
}

// Validate checks the members that are given. Whether a name is missing depends on the record.
func (in *UpdateInput) Validate(v *apierr.Fields) {
	some := "a name" // as long as the other one is not known
	payers.Parse(v, in, Payer{Name: &some, Company: &some}).checkName(v)
}

// apply returns the payer with the changes.
func (in UpdateInput) apply(before Payer) (Payer, error) {
	var problems apierr.Fields
	p := payers.Parse(&problems, &in, before)
	p.Active = before.Active || in.Active != nil && *in.Active
	p.checkName(&problems)
	return p, problems.Err()
}
