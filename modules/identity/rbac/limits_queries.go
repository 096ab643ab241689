package rbac

import (
	"context"

	"kontor/modules/kit/list"
	"kontor/store"
)

const limitColumns = "endpoint, per_minute, modified_at, modified_by, version"

var limitList = list.New(list.Source[RateLimit]{
	From: "rate_limit_rules", Columns: limitColumns, ID: "endpoint", Created: "modified_at",
	Tables: []string{"rate_limit_rules"}, Scan: scanLimit,
	Fields: list.Fields{
		{Name: "endpoint", Type: list.Text, Column: "endpoint"},
		{Name: "per_minute", Type: list.Number, Column: "per_minute"},
		{Name: "modified_at", Type: list.Time, Column: "modified_at"},
		{Name: "modified_by", Type: list.UUID, Column: "modified_by"},
	},
})

func scanLimit(row list.Row) (RateLimit, error) {
	var r RateLimit
	err := row.Scan(&r.Endpoint, &r.PerMinute, &r.ModifiedAt, &r.ModifiedBy, &r.version)
	return r, err
}

const selectLimitOf = "SELECT " + limitColumns + " FROM rate_limit_rules WHERE endpoint = $1"

func selectLimit(ctx context.Context, q store.Querier, key string) (RateLimit, error) {
	return scanLimit(q.QueryRow(ctx, selectLimitOf, key))
}

const upsertLimitRow = `
	INSERT INTO rate_limit_rules (endpoint, per_minute, modified_at, modified_by, version)
	VALUES ($1, $2, $3, $4, $5)
	ON CONFLICT (endpoint) DO UPDATE SET per_minute = excluded.per_minute, modified_at = excluded.modified_at,
		modified_by = excluded.modified_by, version = excluded.version`

func upsertLimit(ctx context.Context, tx *store.Tx, r RateLimit) error {
	_, err := tx.Exec(ctx, upsertLimitRow, r.Endpoint, *r.PerMinute, r.ModifiedAt, r.ModifiedBy, r.version)
	return err
}

const deleteLimitRow = `DELETE FROM rate_limit_rules WHERE endpoint = $1`

func deleteLimit(ctx context.Context, tx *store.Tx, key string) error {
	_, err := tx.Exec(ctx, deleteLimitRow, key)
	return err
}
