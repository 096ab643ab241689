package records

import (
	"context"
	"fmt"
	"slices"

	"kontor/server/access"
	"kontor/store"
)

// Permitted returns the ids of records on which a user has a permission, in their order.
func (r recordsOf[T]) Permitted(ctx context.Context, sought access.Sought) ([]string, error) {
	ids, err := r.table.permitted(ctx, r.db, sought)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", r.table.Type.Name, err)
	}
	return ids, nil
}

// permitted reads the records of each source of the permission by a statement of its own, from an index, and merges them. A statement
// with all conditions would read the whole table for a user with few records.
func (t *Table[T]) permitted(ctx context.Context, q store.Querier, sought access.Sought) ([]string, error) {
	if sought.All {
		return store.All(ctx, q, store.Text, `SELECT id FROM `+t.From+` WHERE id > $1 ORDER BY id LIMIT $2`, sought.After, sought.Limit)
	}
	var found []string
	for _, relation := range t.Relations {
		if !relation.Allows.Has(sought.Wanted) {
			continue
		}
		// The concatenation keeps the database from reading the table in the order of the ids until it has found enough.
		ids, err := store.All(ctx, q, store.Text,
			`SELECT id FROM `+t.From+` WHERE (`+relation.SQL+`) AND id || '' > $2 ORDER BY id || '' LIMIT $3`,
			sought.Caller.UserID, sought.After, sought.Limit)
		if err != nil {
			return nil, err
		}
		found = append(found, ids...)
	}
	for _, principal := range append([]string{sought.Caller.UserID}, sought.Caller.Roles...) {
		ids, err := store.All(ctx, q, store.Text, `
			SELECT p.rec_id FROM permissions p
			WHERE p.principal_id = $1 AND p.rec_type = $2 AND p.permission = $3 AND p.rec_id > $4
				AND EXISTS (SELECT 1 FROM `+t.From+` r WHERE r.id = p.rec_id)
			ORDER BY p.rec_id LIMIT $5`,
			principal, t.Type.Name, sought.Wanted.String(), sought.After, sought.Limit)
		if err != nil {
			return nil, err
		}
		found = append(found, ids...)
	}
	slices.Sort(found)
	found = slices.Compact(found)
	return found[:min(len(found), sought.Limit)], nil
}
