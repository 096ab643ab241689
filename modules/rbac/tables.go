package rbac

import (
	"context"
	"maps"
	"strconv"

	"kontor/modules/kit/list"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/store"
)

// Endpoint is an operation of the API as grants and rate-limit rules name it.
type Endpoint struct {
	Endpoint  string `json:"endpoint"` // GET /v1/customers/{id}
	Name      string `json:"name" example:"customers.get"`
	Method    string `json:"method"`
	Path      string `json:"path"`
	Tag       string `json:"tag" example:"Customers"`
	Summary   string `json:"summary"`
	Access    string `json:"access" example:"bearer customers:read" doc:"public, api-key, or bearer with record type and permission."` // public, api-key, bearer, or bearer with record type and permission
	RateLimit string `json:"rate_limit" enum:"none,public,private"`                                                                    // which general limit holds: none, public or private

	active bool
}

func describe(e endpoint.Endpoint) Endpoint {
	return Endpoint{
		Endpoint: e.Key(), Name: e.Name, Method: e.Method, Path: e.Path, Tag: e.Tag, Summary: e.Summary,
		Access: e.Access.String(), RateLimit: e.Limit.String(), active: true,
	}
}

// RecordType is a kind of record that can be granted.
type RecordType struct {
	ID   string `json:"id"`
	Name string `json:"name" example:"customers"`
}

// serves reports whether this process has the endpoint.
func (s *Service) serves(key string) bool {
	_, known := s.table[key]
	return known
}

// limited returns nil for an endpoint that can have a rate-limit rule.
func (s *Service) limited(key string) error {
	e, known := s.table[key]
	if !known {
		return apierr.EndpointNotFound
	}
	if e.RateLimit == ratelimit.None.String() {
		return apierr.Invalid("endpoint", "invalid.endpoint_unlimited")
	}
	return nil
}

// Endpoints of the table, one page.
func (s *Service) listEndpoints(ctx context.Context, in struct {
	Query endpointParams `query:"*"`
}) (list.Page[Endpoint], error) {
	return endpointList.Page(ctx, s.db, in.Query.Params)
}

func (s *Service) listRecordTypes(ctx context.Context, in struct {
	Query typeParams `query:"*"`
}) (list.Page[RecordType], error) {
	return typeList.Page(ctx, s.db, in.Query.Params)
}

// wholeTable is the limit of the fixed tables when the client names none: they are small, and mostly wanted whole.
const wholeTable = 100

// endpointParams are those of a list in the order of the paths, if the client names no other.
type endpointParams struct{ list.Params }

// BindQuery reads the query string.
func (p *endpointParams) BindQuery(query map[string][]string, problems *apierr.Fields) {
	p.Params.BindQuery(withDefaults(query, "path,method"), problems)
}

// typeParams are those of a list in the order of the names.
type typeParams struct{ list.Params }

// BindQuery reads the query string.
func (p *typeParams) BindQuery(query map[string][]string, problems *apierr.Fields) {
	p.Params.BindQuery(withDefaults(query, "name"), problems)
}

func withDefaults(query map[string][]string, sort string) map[string][]string {
	query = maps.Clone(query)
	if len(query["limit"]) == 0 {
		query["limit"] = []string{strconv.Itoa(wholeTable)}
	}
	if len(query["sort"]) == 0 {
		query["sort"] = []string{sort}
	}
	return query
}

const endpointColumns = "endpoint, name, method, path, tag, summary, access, rate_class, active"

var endpointList = list.New(list.Source[Endpoint]{
	From: "endpoints", Columns: endpointColumns, ID: "endpoint", Tables: []string{"endpoints"}, Scan: scanEndpoint,
	Base: list.Where{SQL: "active = TRUE"},
	Fields: list.Fields{
		{Name: "endpoint", Type: list.Text, Column: "endpoint"},
		{Name: "name", Type: list.Text, Column: "name"},
		{Name: "method", Type: list.Text, Column: "method"},
		{Name: "path", Type: list.Text, Column: "path"},
		{Name: "tag", Type: list.Text, Column: "tag"},
		{Name: "summary", Type: list.Text, Column: "summary"},
		{Name: "access", Type: list.Text, Column: "access"},
		{Name: "rate_limit", Type: list.Text, Column: "rate_class"},
	},
})

func scanEndpoint(row list.Row) (Endpoint, error) {
	var e Endpoint
	err := row.Scan(&e.Endpoint, &e.Name, &e.Method, &e.Path, &e.Tag, &e.Summary, &e.Access, &e.RateLimit, &e.active)
	return e, err
}

var typeList = list.New(list.Source[RecordType]{
	From: "record_types", Columns: "id, name", ID: "id", Created: "created_at", Tables: []string{"record_types"},
	Fields: list.Fields{{Name: "id", Type: list.UUID, Column: "id"}, {Name: "name", Type: list.Text, Column: "name"}},
	Scan: func(row list.Row) (RecordType, error) {
		var t RecordType
		err := row.Scan(&t.ID, &t.Name)
		return t, err
	},
})

const (
	selectBuiltInRoles = `SELECT id FROM roles WHERE builtin = TRUE`
	selectRecordTypes  = `SELECT id FROM record_types`
	insertRecordType   = `INSERT INTO record_types (id, name, created_at) VALUES ($1, $2, $3)`
	selectEndpoints    = "SELECT " + endpointColumns + " FROM endpoints"
	upsertEndpointRow  = `
		INSERT INTO endpoints (endpoint, name, method, path, tag, summary, access, rate_class, active, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		ON CONFLICT (endpoint) DO UPDATE SET name = excluded.name, tag = excluded.tag, summary = excluded.summary,
			access = excluded.access, rate_class = excluded.rate_class, active = excluded.active`
)

// column reads a statement with one column of texts.
func column(ctx context.Context, q store.Querier, statement string) (map[string]bool, error) {
	found := map[string]bool{}
	err := each(ctx, q, func(rows *store.Rows) error {
		var text string
		err := rows.Scan(&text)
		found[text] = true
		return err
	}, statement)
	return found, err
}

func knownEndpoints(ctx context.Context, q store.Querier) (map[string]Endpoint, error) {
	known := map[string]Endpoint{}
	err := each(ctx, q, func(rows *store.Rows) error {
		e, err := scanEndpoint(rows)
		known[e.Endpoint] = e
		return err
	}, selectEndpoints)
	return known, err
}

func upsertEndpoint(ctx context.Context, tx *store.Tx, e Endpoint) error {
	_, err := tx.Exec(ctx, upsertEndpointRow, e.Endpoint, e.Name, e.Method, e.Path, e.Tag, e.Summary, e.Access, e.RateLimit, e.active, tx.Now())
	return err
}
