package payers

import (
	"context"
	"strconv"
	"strings"

	"kontor/modules/kit/list"
	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
)

// The bounds of limit.
const (
	defaultLimit = 20
	maxLimit     = 100
)

// Page is one page of the list of payers.
type Page struct {
	Payers  []Payer `json:"payers"`
	Total   int64   `json:"total" doc:"The number of matching payers that the caller may read."`
	HasMore bool    `json:"has_more" doc:"Whether more payers follow."`
}

// EachUser names the users of all payers of the page.
func (p Page) EachUser(add func(id string)) {
	for _, payer := range p.Payers {
		payer.EachUser(add)
	}
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
		if _, err := types.ParseCountry(*in.Country); err != nil {
			validate.Note(v, "country", err)
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
	in.query = in.query.WithText(in.Text, payers.From)
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

// SetPage selects a page, see [endpoint.Pageable].
func (in *ListInput) SetPage(limit int, offset int64) { in.query.SetPage(limit, offset) }

// Rows describes the payers of the page, see [endpoint.RowPage].
func (p Page) Rows() endpoint.Rows {
	return endpoint.Rows{Slice: p.Payers, Total: p.Total, More: p.HasMore}
}

// List returns the payers that the caller may read, including inactive ones, newest first.
func (s *Service) List(ctx context.Context, in ListInput) (Page, error) {
	page, err := payers.List.Page(ctx, s.db, in.query, payers.Visible(access.From(ctx)), in.ofCompany())
	return Page{Payers: page.Data.Rows, Total: page.Total, HasMore: page.HasMore}, err
}
