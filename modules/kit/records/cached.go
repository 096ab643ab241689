package records

import (
	"context"
	"reflect"
	"regexp"

	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// Cached reads records of a table whose answers depend on their row alone, and remembers the encoded answers. It never returns an
// answer that is older than a commit which was acknowledged before the call, see [store.RowCache].
//
// The right to read is decided for each call, and never remembered.
type Cached[T any] struct {
	db      *store.DB
	table   *Table[T]
	answers *store.RowCache[*endpoint.Encoded]
}

// plainColumns are columns of one table: no expressions and no subqueries, which could read other tables or the time.
var plainColumns = regexp.MustCompile(`^\s*\w+(\s*,\s*\w+)*\s*$`)

// Cache returns a reader of a table. It panics for a table whose answers depend on more than their row: on other tables, or on the
// names of users. Scan must not use the time or anything else that changes.
func Cache[T any](db *store.DB, t *Table[T]) *Cached[T] {
	if !plainColumns.MatchString(t.From+","+t.Columns) || endpoint.TypeNamesUsers(reflect.TypeFor[T]()) {
		panic("records: answers with " + t.Type.Name + " depend on more than one row")
	}
	return &Cached[T]{db: db, table: t, answers: store.NewRowCache[*endpoint.Encoded](db, t.From, "id")}
}

// Get is [Table.Get] with the encoded answer. A caller without a grant on the type gets the decision from the statement that reads
// the record.
func (c *Cached[T]) Get(ctx context.Context, id string, wanted access.Permission) (*endpoint.Encoded, error) {
	if !access.From(ctx).May(c.table.Type, wanted) {
		record, err := c.table.Get(ctx, c.db, id, wanted)
		if err != nil {
			return nil, err
		}
		return endpoint.Encode(record)
	}
	if known, ok := c.answers.Get(id); ok {
		return known, nil
	}
	began := c.answers.Begin(ctx)
	record, err := c.table.GetUnchecked(ctx, c.db, id)
	if err != nil {
		return nil, err
	}
	encoded, err := endpoint.Encode(record)
	if err == nil {
		c.answers.Put(began, id, encoded, encoded.Size())
	}
	return encoded, err
}
