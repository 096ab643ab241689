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

// OneInput names one payer.
type OneInput struct {
	ID string `path:"id"`
}

// ListInput are the parameters of the list. Unlike those of other lists they are refused where they do not fit.
type ListInput struct {
	Limit   *int    `query:"limit" minimum:"1" maximum:"100" default:"20"`
	Offset  *int    `query:"offset" minimum:"0" default:"0" example:"0"`
	Company string  `query:"company"` // a part of the name, without regard to case
	Country *string `query:"country" pattern:"^[A-Z]{3}$"`
	Active  *bool   `query:"active"`

	query   list.Params
	company string // folded
}

// Validate checks the parameters and makes those of the query layer of them.
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
	if in.Country != nil {
		if !isCountryForm(*in.Country) {
			v.Add("country", "payers.country_form")
		}
		query["search.country"] = []string{*in.Country}
	}
	if in.Active != nil {
		query["search.active"] = []string{strconv.FormatBool(*in.Active)}
	}
	in.company = types.Fold(validate.Line(v, "company", in.Company, maxCompany))
	in.query.BindQuery(query, v)
}

// isCountryForm tells what looks like an alpha-3 code. A code that no country has is a filter that nothing matches.
func isCountryForm(text string) bool {
	return len(text) == 3 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// likeEscapes keeps the signs of a pattern from being one.
var likeEscapes = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// ofCompany is the condition of the payers whose company has the wanted part.
func (in ListInput) ofCompany() list.Where {
	if in.company == "" {
		return list.Where{}
	}
	return list.Where{SQL: `company_key LIKE $1 ESCAPE '\'`, Args: []any{"%" + likeEscapes.Replace(in.company) + "%"}}
}

// CreateInput are the data of a new payer. The customer is required, and a name or a company.
type CreateInput struct {
	CustomerID string         `json:"customer_id"`
	Email      string         `json:"email"`
	Name       string         `json:"name" required:"false" doc:"A name or a company is needed."`
	Company    string         `json:"company" required:"false"`
	Country    string         `json:"country" pattern:"^[A-Z]{3}$"`
	Metadata   jsontext.Value `json:"metadata"`

	payer Payer
}

// Validate checks all data and makes the payer of them. Whether the customer exists is checked in the transaction.
func (in *CreateInput) Validate(v *apierr.Fields) {
	if in.CustomerID == "" {
		v.Add("customer_id", "invalid.required")
	}
	customerID := validate.Parsed(v, "customer_id", in.CustomerID, types.ParseID)
	in.payer = in.check(v)
	in.payer.CustomerID = customerID
}

// check checks what an update may change, too.
func (in CreateInput) check(v *apierr.Fields) Payer {
	p := Payer{
		Email:    optional(validate.Parsed(v, "email", in.Email, types.ParseEmail).String()),
		Name:     optional(validate.Line(v, "name", in.Name, maxName)),
		Company:  optional(validate.Line(v, "company", in.Company, maxCompany)),
		Country:  optional(validate.Parsed(v, "country", in.Country, types.ParseCountry).String()),
		Metadata: jsontext.Value(validate.Metadata(v, "metadata", in.Metadata)),
	}
	if p.Name == nil && p.Company == nil {
		v.Add("name", "payers.name_or_company") // unless something else is wrong with it
	}
	return p
}

// optional is nil for the empty text.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// UpdateInput are the data of a payer that are to be replaced. What is not given stays; null or "" removes what may be
// missing.
type UpdateInput struct {
	ID       string                            `path:"id"`
	Email    endpoint.Optional[string]         `json:"email"`
	Name     endpoint.Optional[string]         `json:"name"`
	Company  endpoint.Optional[string]         `json:"company"`
	Country  endpoint.Optional[string]         `json:"country" pattern:"^[A-Z]{3}$"`
	Metadata endpoint.Optional[jsontext.Value] `json:"metadata"`
}

// apply gives the payer with the changes. The rules are those of a new payer, because name and company hang together.
func (in UpdateInput) apply(before Payer) (Payer, error) {
	var problems apierr.Fields
	p := CreateInput{
		Email:    in.Email.Or(text(before.Email)),
		Name:     in.Name.Or(text(before.Name)),
		Company:  in.Company.Or(text(before.Company)),
		Country:  in.Country.Or(text(before.Country)),
		Metadata: in.Metadata.Or(before.Metadata),
	}.check(&problems)
	p.ID, p.CustomerID, p.Active = before.ID, before.CustomerID, before.Active
	p.CreatedAt, p.CreatedBy = before.CreatedAt, before.CreatedBy
	return p, problems.Err()
}
