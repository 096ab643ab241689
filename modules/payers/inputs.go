package payers

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/list"
	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/apierr"
	"kontor/server/endpoint"
)

// Lengths in characters.
const (
	maxName    = 200
	maxCompany = 200
)

// The bounds of limit.
const (
	defaultLimit = 20
	maxLimit     = 100
)

// OneInput is the id of a payer.
type OneInput struct {
	ID string `path:"id"`
}

// ListInput contains the parameters of the list. Unlike other lists, this one rejects invalid values.
type ListInput struct {
	Limit      *int    `query:"limit" minimum:"1" maximum:"100" default:"20"`
	Offset     *int    `query:"offset" minimum:"0" default:"0" example:"0"`
	Company    string  `query:"company" doc:"A part of the company's name; case is ignored."`
	Country    *string `query:"country" pattern:"^[A-Z]{3}$"`
	Active     *bool   `query:"active"`
	CustomerID *string `query:"customer_id" doc:"Only the payers of this customer."`
	Cursor     *string `query:"cursor" doc:"The next_cursor of an answer to the same search: the page continues after its last row."`

	Text list.Words `query:"q"`

	query   list.Params
	company string // folded
}

// Validate checks the parameters and translates them to those of the query layer.
func (in *ListInput) Validate(v *apierr.Fields) {
	query := map[string][]string{"limit": {strconv.Itoa(defaultLimit)}}
	if in.Limit != nil {
		if *in.Limit < 1 || *in.Limit > maxLimit {
			v.Add("limit", "invalid.range", apierr.Args{"Min": 1, "Max": maxLimit})
		}
		query["limit"] = []string{strconv.Itoa(*in.Limit)}
	}
	if in.Offset != nil {
		if *in.Offset < 0 {
			v.Add("offset", "invalid.min", apierr.Args{"Min": 0})
		}
		query["offset"] = []string{strconv.Itoa(*in.Offset)}
	}
	if in.Cursor != nil {
		query["cursor"] = []string{*in.Cursor}
	}
	if in.Country != nil {
		if !isCountryForm(*in.Country) {
			v.Add("country", "payers.country_form")
		}
		query["search.country"] = []string{*in.Country}
	}
	if in.Active != nil {
		query["search.active"] = []string{strconv.FormatBool(*in.Active)}
	}
	if in.CustomerID != nil {
		query["search.customer_id"] = []string{validate.Parsed(v, "customer_id", *in.CustomerID, types.ParseID)}
	}
	in.company = types.Fold(validate.Line(v, "company", in.Company, maxCompany))
	in.query.BindQuery(query, v)
	in.Text.Validate(v)
	in.query = in.query.WithText(in.Text, source)
}

// isCountryForm reports whether a text has the form of an alpha-3 code. The filter accepts unassigned codes, which match
// nothing.
func isCountryForm(text string) bool {
	return len(text) == 3 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// likeEscapes escapes the wildcards of LIKE.
var likeEscapes = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// ofCompany returns the condition that the company contains the wanted text.
func (in ListInput) ofCompany() list.Where {
	if in.company == "" {
		return list.Where{}
	}
	return list.Where{SQL: `company_key LIKE $1 ESCAPE '\'`, Args: []any{"%" + likeEscapes.Replace(in.company) + "%"}}
}

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
	if in.CustomerID == "" {
		v.Add("customer_id", "invalid.required")
	}
	customerID := validate.Parsed(v, "customer_id", in.CustomerID, types.ParseID)
	in.payer = in.check(v)
	in.payer.CustomerID = customerID
}

// check checks the members that an update may change, too.
func (in CreateInput) check(v *apierr.Fields) Payer {
	p := Payer{
		Email:    types.NilIfEmpty(validate.Parsed(v, "email", in.Email, types.ParseEmail).String()),
		Name:     types.NilIfEmpty(validate.Line(v, "name", in.Name, maxName)),
		Company:  types.NilIfEmpty(validate.Line(v, "company", in.Company, maxCompany)),
		Country:  types.NilIfEmpty(validate.Parsed(v, "country", in.Country, types.ParseCountry).String()),
		Metadata: jsontext.Value(validate.Metadata(v, "metadata", in.Metadata)),
	}
	if p.Name == nil && p.Company == nil {
		v.Add("name", "payers.name_or_company") // ignored if name already has an error
	}
	return p
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

// Validate checks the members that are given, as far as their rules do not depend on others.
func (in *UpdateInput) Validate(v *apierr.Fields) {
	given := map[string]bool{"email": in.Email.Given, "name": in.Name.Given, "company": in.Company.Given, "country": in.Country.Given, "metadata": in.Metadata.Given}
	const some = "a name" // whether the other name is missing depends on the record
	var problems apierr.Fields
	CreateInput{Email: in.Email.Or(""), Name: in.Name.Or(some), Company: in.Company.Or(some), Country: in.Country.Or(""), Metadata: in.Metadata.Or(nil)}.check(&problems)
	validate.Given(v, &problems, given)
}

// apply returns the payer with the changes. It checks all members by the rules for a new payer, because name and company
// depend on each other.
func (in UpdateInput) apply(before Payer) (Payer, error) {
	var problems apierr.Fields
	p := CreateInput{
		Email:    in.Email.Or(types.EmptyIfNil(before.Email)),
		Name:     in.Name.Or(types.EmptyIfNil(before.Name)),
		Company:  in.Company.Or(types.EmptyIfNil(before.Company)),
		Country:  in.Country.Or(types.EmptyIfNil(before.Country)),
		Metadata: in.Metadata.Or(before.Metadata),
	}.check(&problems)
	p.ID, p.CustomerID, p.Active = before.ID, before.CustomerID, before.Active || in.Active != nil && *in.Active
	p.CreatedAt, p.CreatedBy = before.CreatedAt, before.CreatedBy
	return p, problems.Err()
}
