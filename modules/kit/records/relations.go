package records

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"kontor/server/access"
	"kontor/store"
)

// standingsChunk is how many records one statement asks for. Shorter lists are filled up, so that one prepared
// statement serves all.
const standingsChunk = 20

// Standings is the module's half of [access.Records]: what the user is to each of the records that exist.
func (t *Table[T]) Standings(ctx context.Context, q store.Querier, userID string, ids []string) (map[string]access.Standing, error) {
	found := make(map[string]access.Standing, len(ids))
	for len(ids) > 0 {
		n := min(len(ids), standingsChunk)
		if err := t.standings(ctx, q, userID, ids[:n], found); err != nil {
			return nil, fmt.Errorf("standings of %s: %w", t.Type.Name, err)
		}
		ids = ids[n:]
	}
	return found, nil
}

func (t *Table[T]) standings(ctx context.Context, q store.Querier, userID string, ids []string, found map[string]access.Standing) error {
	args := make([]any, standingsChunk+1)
	args[0] = userID
	for i := range standingsChunk {
		args[i+1] = ids[min(i, len(ids)-1)]
	}
	rows, err := q.Query(ctx, t.standingsStatement(), args...)
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
		var standing access.Standing
		for i, relation := range t.Relations {
			if holds[i] {
				standing.Own |= relation.Allows
			}
		}
		found[id] = standing
	}
	return rows.Err()
}

func (t *Table[T]) standingsStatement() string {
	if text, ok := t.statements.Load("standings"); ok {
		return text.(string)
	}
	var b strings.Builder
	b.WriteString("SELECT id")
	for _, relation := range t.Relations {
		b.WriteString(", (" + relation.SQL + ")")
	}
	b.WriteString(" FROM " + t.From + " WHERE id IN (")
	for i := range standingsChunk {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("$" + strconv.Itoa(i+2))
	}
	b.WriteString(")")
	t.statements.Store("standings", b.String())
	return b.String()
}
