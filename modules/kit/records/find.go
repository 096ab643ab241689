package records

import (
	"context"

	"kontor/server/access"
	"kontor/store"
)

// Finder returns an [endpoint.Endpoint.Find] for rows whose path begins with the id of a record of the table. It returns Missing and
// apierr.NoAccess.
func Finder[T any](db *store.DB, t *Table[T], wanted access.Permission) func(ctx context.Context, ids []string, in any) error {
	return func(ctx context.Context, ids []string, _ any) error {
		_, err := t.Get(ctx, db, ids[0], wanted)
		return err
	}
}
