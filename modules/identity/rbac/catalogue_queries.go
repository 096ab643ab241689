package rbac

import (
	"context"

	"kontor/modules/kit/list"
	"kontor/store"
)

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

// selectSet returns the set of texts that a statement with one column selects.
func selectSet(ctx context.Context, q store.Querier, statement string, args ...any) (map[string]bool, error) {
	found := map[string]bool{}
	err := each(ctx, q, func(rows *store.Rows) error {
		var text string
		err := rows.Scan(&text)
		found[text] = true
		return err
	}, statement, args...)
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
	_, err := tx.Exec(ctx, upsertEndpointRow, e.Endpoint, e.Name, e.Method, e.Path, e.Tag, e.Summary, e.Access, e.RateLimit, e.Assurance, e.active, tx.Now())
	return err
}
