package rbac

import (
	"context"
	"maps"
	"strconv"

	"kontor/modules/kit/list"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// Endpoint is an operation of the API, as grants and rate-limit rules name it.
type Endpoint struct {
	Endpoint  string `json:"endpoint" example:"GET /v1/customers/{id}"`
	Name      string `json:"name" example:"customers.get"`
	Method    string `json:"method"`
	Path      string `json:"path"`
	Tag       string `json:"tag" example:"Customers"`
	Summary   string `json:"summary"`
	Access    string `json:"access" example:"bearer customers:read" doc:"public, api-key, bearer, or bearer with record type and permission; own instead of bearer where signed-in users need no grant."`
	RateLimit string `json:"rate_limit" enum:"none,public,private" doc:"The general rate limit of the endpoint."`
	Assurance string `json:"assurance" example:"second_factor" doc:"How recently the caller must have authenticated: any, fresh or second_factor; with a condition if only some requests need it."`

	active bool
}

// describe returns the stored form of a row of the endpoint table.
func describe(e endpoint.Endpoint) Endpoint {
	return Endpoint{
		Endpoint: e.Key(), Name: e.Name, Method: e.Method, Path: e.Path, Tag: e.Tag, Summary: e.Summary,
		Access: e.Access.String(), RateLimit: e.Limit.String(), Assurance: e.Assurance.String(), active: true,
	}
}

// RecordType is a type of records on which permissions can be granted.
type RecordType struct {
	ID          string   `json:"id"`
	Name        string   `json:"name" example:"customers"`
	Description string   `json:"description" doc:"Of a type of another application; empty for those of Kontor."`
	Permissions []string `json:"permissions" example:"read" doc:"What can be granted on records of the type."`
	External    bool     `json:"external" doc:"true for a type of another application: Kontor decides about its records and does not have them."`
}

// serves reports whether this process serves the endpoint.
func (s *Service) serves(key string) bool {
	_, known := s.endpoints[key]
	return known
}

// checkLimitable returns nil for an endpoint that can have a rate-limit rule.
func (s *Service) checkLimitable(key string) error {
	e, known := s.endpoints[key]
	if !known {
		return apierr.EndpointNotFound
	}
	if e.RateLimit == ratelimit.None.String() {
		return apierr.Invalid("endpoint", "invalid.endpoint_unlimited")
	}
	return nil
}

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

// catalogueLimit is the default page size of endpoints and record types. Both lists are short, and clients usually want all of
// them.
const catalogueLimit = 100

// endpointParams are list parameters with the default order by path.
type endpointParams struct{ list.Params }

// BindQuery reads the query string.
func (p *endpointParams) BindQuery(query map[string][]string, problems *apierr.Fields) {
	p.Params.BindQuery(withDefaults(query, "path,method"), problems)
}

// typeParams are list parameters with the default order by name.
type typeParams struct{ list.Params }

// BindQuery reads the query string.
func (p *typeParams) BindQuery(query map[string][]string, problems *apierr.Fields) {
	p.Params.BindQuery(withDefaults(query, "name"), problems)
}

// withDefaults returns the query with the default limit and order where it has none.
func withDefaults(query map[string][]string, sort string) map[string][]string {
	query = maps.Clone(query)
	if len(query["limit"]) == 0 {
		query["limit"] = []string{strconv.Itoa(catalogueLimit)}
	}
	if len(query["sort"]) == 0 {
		query["sort"] = []string{sort}
	}
	return query
}
