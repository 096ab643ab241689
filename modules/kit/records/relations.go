package records

import (
	"context"
	"fmt"
	"strings"

	"kontor/server/access"
	"kontor/store"
)

// Of returns a [access.Records] that answers from one table.
func Of[T any](db *store.DB, t *Table[T]) access.Records { return recordsOf[T]{db, t} }

type recordsOf[T any] struct {
	db    *store.DB
	table *Table[T]
}

// RecordType returns the type of the records.
func (r recordsOf[T]) RecordType() access.RecordType { return r.table.Type }

// Relations returns the permissions that a user has by relations.
func (r recordsOf[T]) Relations(ctx context.Context, userID string, ids []string) (map[string]access.Permission, error) {
	return r.table.RelationsOf(ctx, r.db, userID, ids)
}

// Related returns the users who have a permission on a record by relations.
func (r recordsOf[T]) Related(ctx context.Context, id string, wanted access.Permission) (users map[string][]string, exists bool, err error) {
	return r.table.RelatedTo(ctx, r.db, id, wanted)
}

// relationsChunk is the number of records of one statement. Shorter lists are padded, so that all chunks share one prepared
// statement.
const relationsChunk = 20

// RelationsOf returns, by id, the permissions that a user has by relations to records. Unknown ids are missing.
func (t *Table[T]) RelationsOf(ctx context.Context, q store.Querier, userID string, ids []string) (map[string]access.Permission, error) {
	found := make(map[string]access.Permission, len(ids))
	for len(ids) > 0 {
		n := min(len(ids), relationsChunk)
		if err := t.addRelations(ctx, q, userID, ids[:n], found); err != nil {
			return nil, fmt.Errorf("read relations to %s: %w", t.Type.Name, err)
		}
		ids = ids[n:]
	}
	return found, nil
}

func (t *Table[T]) addRelations(ctx context.Context, q store.Querier, userID string, ids []string, found map[string]access.Permission) error {
	args := make([]any, relationsChunk+1)
	args[0] = userID
	for i := range relationsChunk {
		args[i+1] = ids[min(i, len(ids)-1)]
	}
	rows, err := q.Query(ctx, t.relationsStatement(), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		holds := make([]bool, len(t.Relations))
		dest := []any{&id}
		for i := range holds {
			dest = append(dest, &holds[i])
		}
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		allowed := access.None
		for i, relation := range t.Relations {
			if holds[i] {
				allowed |= relation.Allows
			}
		}
		found[id] = allowed
	}
	return rows.Err()
}

// relationsStatement reads which relations the user $1 has to each of the records that exist.
func (t *Table[T]) relationsStatement() string {
	const name = "relations"
	if text, ok := t.statements.Load(name); ok {
		return text.(string)
	}
	var b strings.Builder
	b.WriteString("SELECT id")
	for _, relation := range t.Relations {
		b.WriteString(", (" + relation.SQL + ")")
	}
	b.WriteString(" FROM " + t.From + " WHERE id IN (")
	for i := range relationsChunk {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "$%d", i+2)
	}
	b.WriteString(")")
	t.statements.Store(name, b.String())
	return b.String()
}
