package rbac

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/store"
)

// Endpoint is an operation of the API, as grants and rate-limit rules name it.
type Endpoint struct {
	Endpoint  string `json:"endpoint" example:"GET /v1/customers/{id}"`
	Name      string `json:"name" example:"customers.get"`
	Method    string `json:"method"`
	Path      string `json:"path"`
	Tag       string `json:"tag" example:"Customers"`
	Summary   string `json:"summary"`
	Access    string `json:"access" example:"bearer customers:read" doc:"public, api-key, bearer, or bearer with record type and permission."`
	RateLimit string `json:"rate_limit" enum:"none,public,private" doc:"The general rate limit of the endpoint."`
	Assurance string `json:"assurance" example:"second_factor" doc:"How recently the caller must have authenticated: any, decision, fresh or second_factor; with a condition if only some requests need it."`

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

const endpointColumns = "endpoint, name, method, path, tag, summary, access, rate_class, assurance, active"

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
		{Name: "assurance", Type: list.Text, Column: "assurance"},
	},
})

func scanEndpoint(row list.Row) (Endpoint, error) {
	var e Endpoint
	err := row.Scan(&e.Endpoint, &e.Name, &e.Method, &e.Path, &e.Tag, &e.Summary, &e.Access, &e.RateLimit, &e.Assurance, &e.active)
	return e, err
}

var typeList = list.New(list.Source[RecordType]{
	From: "record_types", Columns: typeColumns, ID: "id", Created: "created_at", Tables: []string{"record_types"}, Scan: scanType,
	Fields: list.Fields{{Name: "id", Type: list.UUID, Column: "id"}, {Name: "name", Type: list.Text, Column: "name"}},
})

const (
	selectBuiltInRoles = `SELECT id FROM roles WHERE builtin = TRUE`
	selectRecordTypes  = `SELECT id FROM record_types`
	insertRecordType   = `INSERT INTO record_types (id, name, created_at) VALUES ($1, $2, $3)`
	selectEndpoints    = "SELECT " + endpointColumns + " FROM endpoints"
	upsertEndpointRow  = `
		INSERT INTO endpoints (endpoint, name, method, path, tag, summary, access, rate_class, assurance, active, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT (endpoint) DO UPDATE SET name = excluded.name, tag = excluded.tag, summary = excluded.summary,
			access = excluded.access, rate_class = excluded.rate_class, assurance = excluded.assurance, active = excluded.active`
)

func knownEndpoints(ctx context.Context, q store.Querier) (map[string]Endpoint, error) {
	known := map[string]Endpoint{}
	err := store.Each(ctx, q, func(rows store.Scanner) error {
		e, err := scanEndpoint(rows)
		known[e.Endpoint] = e
		return err
	}, selectEndpoints)
	return known, err
}

func upsertEndpoint(ctx context.Context, tx *store.Tx, e Endpoint) error {
	return tx.Run(ctx, upsertEndpointRow, e.Endpoint, e.Name, e.Method, e.Path, e.Tag, e.Summary, e.Access, e.RateLimit, e.Assurance, e.active, tx.Now())
}

// The last use of held roles and grants is known by the hour. Requests note in memory who has called which endpoint. A job of each
// node writes once a minute what is new, and finds the roles and grants that gave the access. So a request writes nothing, and a
// crash loses the uses of a minute.

const (
	useAccuracy = time.Hour
	// maxUses bounds the memory of a node. Further uses within a minute are not noted.
	maxUses = 50_000
	// useBatch is the number of uses that one transaction writes, so that other writes do not wait long.
	useBatch = 200
)

// use is the call of an endpoint by a user within an hour. The record is named only if no right to its type gave the access.
type use struct {
	user, endpoint, recType, recID string
	everyone                       string // the role Everyone, if the user holds it
	permission                     access.Permission
	hour                           store.Time
}

// uses are the calls of the last hour.
type uses struct {
	mu      sync.Mutex
	written map[use]bool // false: noted since the last write
}

// note remembers a use. It copies the texts, which belong to a request.
func (u *uses) note(n use) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, known := u.written[n]; known || len(u.written) >= maxUses {
		return
	}
	n.user, n.recID = strings.Clone(n.user), strings.Clone(n.recID)
	if u.written == nil {
		u.written = map[use]bool{}
	}
	u.written[n] = false
}

// take returns the uses that are not written, and forgets those of former hours, or all written ones when there are many.
func (u *uses) take(hour store.Time) (fresh []use) {
	u.mu.Lock()
	defer u.mu.Unlock()
	many := len(u.written) > maxUses/2
	for n, written := range u.written {
		switch {
		case !written:
			fresh = append(fresh, n)
		case many || n.hour != hour:
			delete(u.written, n)
		}
	}
	return fresh
}

func (u *uses) markWritten(some []use) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, n := range some {
		u.written[n] = true
	}
}

// NoteUse remembers that a user has called an endpoint with success. The last of the path's values is the record of the call.
func (s *Service) NoteUse(caller *access.Caller, row *endpoint.Endpoint, key string, values []string) {
	if caller.UserID == "" || !row.Access.TakesBearer() {
		return
	}
	n := use{user: caller.UserID, endpoint: key, hour: s.hour()}
	if slices.Contains(caller.Roles, access.Everyone) {
		n.everyone = access.Everyone
	}
	if t, permission, ok := row.Access.Record(); ok {
		n.recType, n.permission = t.Name, permission
		if len(values) > 0 && !caller.May(t, permission) {
			n.recID = strings.ToLower(values[len(values)-1])
		}
	}
	s.uses.note(n)
}

// hour returns the beginning of the present hour.
func (s *Service) hour() store.Time {
	now := s.db.Now()
	return now - now%store.Time(useAccuracy.Milliseconds())
}

// upsertUses stores the use of all roles and grants that give a user, $1, an endpoint, $4, and a permission, $6 or $7, on a type, $5,
// or on a record, $8. $9 is the role Everyone, if the user holds it.
const upsertUses = `
	INSERT INTO right_uses (right_id, used_at)
	SELECT DISTINCT id, CAST($2 AS BIGINT) FROM (
		SELECT h.user_id || ':' || h.role_id AS id FROM held_roles h
		WHERE h.user_id = $1 AND (h.role_id = $3 OR EXISTS (
			SELECT 1 FROM endpoint_grants e WHERE e.principal_id = h.role_id AND e.endpoint = $4))
		UNION ALL
		SELECT e.id FROM endpoint_grants e WHERE e.endpoint = $4 AND (e.principal_id = $9 OR e.principal_id IN (` + records.Principals + `))
		UNION ALL
		SELECT g.id FROM grant_records g
		WHERE g.rec_id IS NULL AND g.rec_type = $5 AND g.in_force = TRUE AND COALESCE(g.role_id, g.user_id) IN (` + records.Principals + `)
			AND (',' || g.permissions || ',' LIKE $6 OR ',' || g.permissions || ',' LIKE $7)
		UNION ALL
		SELECT g.id FROM grant_records g
		WHERE g.rec_id = $8 AND g.rec_type = $5 AND g.in_force = TRUE AND COALESCE(g.role_id, g.user_id) IN (` + records.Principals + `)
			AND ',' || g.permissions || ',' LIKE $6
	) used WHERE TRUE
	ON CONFLICT (right_id) DO UPDATE SET used_at = excluded.used_at WHERE right_uses.used_at < excluded.used_at`

// FlushUses writes the uses that were noted since the last call. Call it about once a minute on every node, and at the stop. The times
// leave no audit entry.
func (s *Service) FlushUses(ctx context.Context) error {
	fresh := s.uses.take(s.hour())
	for len(fresh) > 0 {
		some := fresh[:min(len(fresh), useBatch)]
		err := s.db.InTx(ctx, func(tx *store.Tx) error {
			for _, n := range some {
				containing := func(p access.Permission) string { return "%," + p.String() + ",%" }
				_, err := tx.Exec(ctx, upsertUses, n.user, n.hour, access.Administrator, n.endpoint, n.recType,
					containing(n.permission), containing(includes(n.permission)), n.recID, n.everyone)
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("write the last use of rights: %w", err)
		}
		s.uses.markWritten(some)
		fresh = fresh[len(some):]
	}
	return nil
}

// deleteOldUses deletes the uses of rights that were removed.
const deleteOldUses = `DELETE FROM right_uses WHERE right_id NOT IN (SELECT id FROM reviewed_rights)`

// PurgeUses deletes the uses of rights that were removed. Call it about once a day, on one node.
func (s *Service) PurgeUses(ctx context.Context) error {
	return s.db.InTx(ctx, func(tx *store.Tx) error { return tx.Run(ctx, deleteOldUses) })
}
