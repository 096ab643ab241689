package records

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"kontor/server/access"
	"kontor/store"
)

// RelatedTo returns, by user id, the names of the relations that give users the permission on a record. It is the inverse of
// [Table.RelationsOf]. exists is false for an unknown record.
func (t *Table[T]) RelatedTo(ctx context.Context, q store.Querier, id string, wanted access.Permission) (users map[string][]string, exists bool, err error) {
	var one int
	err = q.QueryRow(ctx, "SELECT 1 FROM "+t.From+" WHERE id = $1", id).Scan(&one)
	if errors.Is(err, store.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("look up %s: %w", t.Type.Name, err)
	}
	users = map[string][]string{}
	for _, relation := range t.Relations {
		if !relation.Allows.Has(wanted) {
			continue
		}
		related, err := store.All(ctx, q, store.Text, relation.users(t.From), id)
		if err != nil {
			return nil, true, fmt.Errorf("read users related to %s: %w", t.Type.Name, err)
		}
		for _, user := range related {
			users[user] = append(users[user], relation.Name)
		}
	}
	return users, true, nil
}

// users returns the SELECT of the users who have the relation to the record $1 of a table.
func (r Relation) users(from string) string {
	if r.Users != "" {
		return r.Users
	}
	column, ok := strings.CutSuffix(r.SQL, " = $1")
	if !ok || strings.ContainsAny(column, " (") {
		panic("the relation " + r.SQL + " needs Users")
	}
	return "SELECT " + column + " FROM " + from + " WHERE id = $1"
}
