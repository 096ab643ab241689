package rbac

import (
	"context"
	"fmt"

	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/store"
)

const selectTypeGrants = `SELECT principal_id, rec_type, permission FROM grants WHERE rec_id = ''`

const selectEndpointGrants = `SELECT principal_id, endpoint FROM endpoint_grants`

const selectLimits = `SELECT endpoint, per_minute FROM rate_limit_rules`

// The grants of one user and their roles.
const (
	selectTypeGrantsOf     = selectTypeGrants + ` AND principal_id IN (` + records.Principals + `)`
	selectEndpointGrantsOf = selectEndpointGrants + ` WHERE principal_id IN (` + records.Principals + `)`
)

func readTypeGrants(ctx context.Context, q store.Querier, types map[string]map[string]access.Permission, statement string, args ...any) error {
	return each(ctx, q, func(rows *store.Rows) error {
		var principal, recType, name string
		if err := rows.Scan(&principal, &recType, &name); err != nil {
			return err
		}
		permission, ok := access.ParsePermission(name)
		if !ok {
			return fmt.Errorf("grant of %q", name)
		}
		if types[principal] == nil {
			types[principal] = map[string]access.Permission{}
		}
		types[principal][recType] |= permission
		return nil
	}, statement, args...)
}

func readEndpointGrants(ctx context.Context, q store.Querier, endpoints map[string][]string, statement string, args ...any) error {
	return each(ctx, q, func(rows *store.Rows) error {
		var principal, key string
		if err := rows.Scan(&principal, &key); err != nil {
			return err
		}
		endpoints[principal] = append(endpoints[principal], key)
		return nil
	}, statement, args...)
}

func readLimits(ctx context.Context, q store.Querier, limits map[string]int) error {
	return each(ctx, q, func(rows *store.Rows) error {
		var key string
		var perMinute int
		if err := rows.Scan(&key, &perMinute); err != nil {
			return err
		}
		limits[key] = perMinute
		return nil
	}, selectLimits)
}

// each calls row for each row of a statement.
func each(ctx context.Context, q store.Querier, row func(rows *store.Rows) error, statement string, args ...any) error {
	rows, err := q.Query(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
