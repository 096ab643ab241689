package records

import (
	"context"
	"fmt"

	"kontor/server/access"
	"kontor/store"
)

// Find reads at most limit records that meet a condition, of those that lists show the caller of the context, in the order of their ids.
// The condition is a constant of the program. Its parameters begin with $2; it must use each of them.
func (t *Table[T]) Find(ctx context.Context, q store.Querier, limit int, condition string, args ...any) ([]T, error) {
	caller := access.From(ctx)
	all := append([]any{caller.UserID}, args...)
	found, err := store.All(ctx, q, func(row store.Scanner) (T, error) { return t.Scan(row) }, t.findStatement(condition, caller.May(t.Type, access.ReadAll), limit), all...)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", t.Type.Name, err)
	}
	return found, nil
}

// findKey is the key of the text of a statement.
type findKey struct {
	condition string
	all       bool
	limit     int
}

// findStatement returns the SQL of [Table.Find]: $1 is the user, the further parameters are those of the condition.
func (t *Table[T]) findStatement(condition string, all bool, limit int) string {
	key := findKey{condition, all, limit}
	if text, ok := t.statements.Load(key); ok {
		return text.(string)
	}
	may := "$1 = $1" // each parameter must be used
	if !all {
		may = "(" + t.condition(access.Read) + ")"
	}
	text := fmt.Sprintf("SELECT %s FROM %s WHERE (%s) AND %s ORDER BY %s.id LIMIT %d", t.Columns, t.From, condition, may, t.From, limit)
	t.statements.Store(key, text)
	return text
}
