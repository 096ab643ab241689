package records

import (
	"context"
	"fmt"

	"kontor/server/access"
	"kontor/store"
)

// Seen is a record, and whether the caller may read it.
type Seen[T any] struct {
	ID       string
	Record   T
	Readable bool
}

// Batch reads at most limit records after an id, in the order of the ids, that meet a condition on $2. The same statement decides
// whether the caller of the context may read each of them, as in [Table.Get]. all is the permission on the type that
// makes every record readable. It is [access.Read], as for Get, or [access.ReadAll], as for lists. With [access.None] every
// record is readable.
func (t *Table[T]) Batch(ctx context.Context, q store.Querier, all access.Permission, condition string, value any, after string, limit int) ([]Seen[T], error) {
	caller := access.From(ctx)
	rows, err := q.Query(ctx, t.batchStatement(condition, caller.May(t.Type, all) || all == access.None), caller.UserID, value, after, limit)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", t.Type.Name, err)
	}
	defer rows.Close()
	var batch []Seen[T]
	for rows.Next() {
		var seen Seen[T]
		if seen.Record, err = t.Scan(&rowsWithAccess{rows, &seen.Readable, &seen.ID}); err != nil {
			return nil, fmt.Errorf("read %s: %w", t.Type.Name, err)
		}
		batch = append(batch, seen)
	}
	return batch, rows.Err()
}

// rowsWithAccess are rows whose last two columns, which the module's scanner does not read, are the caller's access and the id.
type rowsWithAccess struct {
	*store.Rows
	allowed *bool
	id      *string
}

// Scan reads the columns, the access and the id.
func (r *rowsWithAccess) Scan(dest ...any) error {
	return r.Rows.Scan(append(append(make([]any, 0, len(dest)+2), dest...), r.allowed, r.id)...)
}

// batchKey is the key of the text of a statement.
type batchKey struct {
	condition string
	all       bool
}

// batchStatement returns the SQL of [Table.Batch]: $1 is the user, $2 the value, $3 the last id, $4 the limit.
func (t *Table[T]) batchStatement(condition string, all bool) string {
	key := batchKey{condition, all}
	if text, ok := t.statements.Load(key); ok {
		return text.(string)
	}
	may := "$1 = $1" // each parameter must be used
	if !all {
		may = t.condition(access.Read)
	}
	text := "SELECT " + t.Columns + ", (" + may + "), " + t.From + ".id FROM " + t.From +
		" WHERE (" + condition + ") AND " + t.From + ".id > $3 ORDER BY " + t.From + ".id LIMIT $4"
	t.statements.Store(key, text)
	return text
}
