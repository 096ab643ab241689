package rbac

import (
	"context"
	"slices"

	"kontor/server/access"
	"kontor/store"
)

// recordGrants reads the grants that the caller and their roles have on the records.
func recordGrants(ctx context.Context, q store.Querier, caller *access.Caller, ids []string) (map[recordPermission]grantHolders, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	found := map[recordPermission]grantHolders{}
	args := store.AppendIn(make([]any, 0, 2*(len(ids)+len(caller.Roles)+1)), ids)
	principals := store.In(len(args)+1, len(caller.Roles)+1)
	args = store.AppendIn(args, append(slices.Clone(caller.Roles), caller.UserID))
	// Nothing is added to the principal's id. The concatenation keeps the database from searching all grants of a
	// principal instead of those on a few records.
	statement := "SELECT principal_id, rec_type, permission, rec_id FROM grants WHERE rec_id IN (" + store.In(1, len(ids)) +
		") AND principal_id || '' IN (" + principals + ")"
	err := each(ctx, q, func(rows *store.Rows) error {
		var right recordPermission
		var principal, name string
		if err := rows.Scan(&principal, &right.recType, &name, &right.recID); err != nil {
			return err
		}
		right.permission, _ = access.ParsePermission(name)
		found[right] = found[right].with(caller, principal)
		return nil
	}, statement, args...)
	return found, err
}
