package rbac

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"kontor/server/access"
	"kontor/store"
)

// recordGrants reads the grants that the caller and his roles have on the records.
func recordGrants(ctx context.Context, q store.Querier, caller *access.Caller, ids []string) (map[recordRight]holders, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	found := map[recordRight]holders{}
	idPlaces, principalPlaces := places(len(ids)), places(1+len(caller.Roles))
	args := make([]any, 0, idPlaces+principalPlaces)
	for i := range idPlaces {
		args = append(args, ids[min(i, len(ids)-1)])
	}
	for i := range principalPlaces {
		if i < len(caller.Roles) {
			args = append(args, caller.Roles[i])
			continue
		}
		args = append(args, caller.UserID)
	}
	err := each(ctx, q, func(rows *store.Rows) error {
		var right recordRight
		var principal, name string
		if err := rows.Scan(&principal, &right.recType, &name, &right.recID); err != nil {
			return err
		}
		right.permission, _ = access.ParsePermission(name)
		held := found[right]
		if principal == caller.UserID {
			held.user = true
		} else if held.role == "" || slices.Index(caller.Roles, principal) < slices.Index(caller.Roles, held.role) {
			held.role = principal
		}
		found[right] = held
		return nil
	}, recordGrantsStatement(idPlaces, principalPlaces), args...)
	return found, err
}

// recordGrantsStatement has few different texts, so that few are compiled and kept. Nothing is added to the principal's
// id: the concatenation only keeps the database from looking through all grants of a principal instead of those on a
// few records.
func recordGrantsStatement(ids, principals int) string {
	var b strings.Builder
	b.Grow(200 + 6*(ids+principals))
	b.WriteString("SELECT principal_id, rec_type, permission, rec_id FROM grants WHERE rec_id IN (")
	writePlaces(&b, 1, ids)
	b.WriteString(") AND principal_id || '' IN (")
	writePlaces(&b, ids+1, principals)
	b.WriteString(")")
	return b.String()
}

func writePlaces(b *strings.Builder, from, n int) {
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(from + i))
	}
}

// places rounds up to a power of two.
func places(n int) int {
	length := 1
	for length < n {
		length *= 2
	}
	return length
}
