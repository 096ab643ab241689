// Package records reads records for a caller and decides in the same statement whether he may. Each module with records
// declares one [Table] and gets reading one, the condition of its lists and the answers to permission checks from it,
// so that they cannot disagree; and what comes before and after a change, in whichever record.
//
// A caller may do something with a record when a grant on its type gives him the permission, when a relation to the
// record does (he created it, takes part in it), or when a grant on the record does, to him or to one of his roles.
package records

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"kontor/modules/kit/list"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// Row is what a scanner reads.
type Row = list.Row

// Relation is what somebody is to a record without any grant.
type Relation struct {
	Allows access.Permission
	SQL    string   // condition on a row of the table; $1 is the user's id
	Tables []string // that the condition reads beside the table itself
}

// Created is the relation of its creator to a record in a table with a column created_by.
var Created = Relation{Allows: access.Read | access.Update | access.Delete, SQL: "created_by = $1"}

// Table declares where the records of a type are and how they are read.
type Table[T any] struct {
	Type      access.RecordType
	From      string // the table; its primary key is the column id
	Columns   string // what Scan reads, separated by commas
	Scan      func(row Row) (T, error)
	Relations []Relation
	Missing   apierr.Kind // what to answer for an id that does not exist
	// Record is a row as the audit trail knows it; nil where that is what the API answers.
	Record func(row T) store.Record

	statements sync.Map // what for → statement text
}

// Get reads one record for the caller of the context, who wants to do something with it. It returns Missing for an
// unknown id and apierr.NoAccess for a record that he may not use so.
func (t *Table[T]) Get(ctx context.Context, q store.Querier, id string, wanted access.Permission) (T, error) {
	caller := access.From(ctx)
	if caller.May(t.Type, wanted) {
		return t.GetUnchecked(ctx, q, id)
	}
	var zero T
	row := checked{Row: q.QueryRow(ctx, t.statement(wanted), caller.UserID, id)}
	record, err := t.Scan(&row)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return zero, t.Missing
	case err != nil:
		return zero, fmt.Errorf("read %s: %w", t.Type.Name, err)
	case !row.allowed:
		return zero, apierr.NoAccess
	}
	return record, nil
}

// Granted reports whether a grant on the type or on the record lets the caller do what is wanted, relations to the record
// aside.
func (t *Table[T]) Granted(ctx context.Context, q store.Querier, id string, wanted access.Permission) (bool, error) {
	caller := access.From(ctx)
	if caller.May(t.Type, wanted) {
		return true, nil
	}
	var one int
	err := q.QueryRow(ctx, selectGrant, caller.UserID, id, t.Type.Name, wanted.String()).Scan(&one)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read a grant on %s: %w", t.Type.Name, err)
	}
	return true, nil
}

const selectGrant = `
	SELECT 1 FROM grants g
	WHERE g.rec_id = $2 AND g.rec_type = $3 AND g.permission = $4 AND ` + granteeSQL + `
	LIMIT 1`

// GetUnchecked reads one record whoever asks. It returns Missing for an unknown id.
func (t *Table[T]) GetUnchecked(ctx context.Context, q store.Querier, id string) (T, error) {
	record, err := t.Scan(q.QueryRow(ctx, t.statement(access.None), id))
	if errors.Is(err, store.ErrNotFound) {
		return record, t.Missing
	}
	if err != nil {
		return record, fmt.Errorf("read %s: %w", t.Type.Name, err)
	}
	return record, nil
}

// checked reads the right to the record behind its columns.
type checked struct {
	Row
	allowed bool
}

func (c *checked) Scan(dest ...any) error { return c.Row.Scan(append(dest, &c.allowed)...) }

// statement is the text that reads one record, made once: with the right to it, or without for [access.None].
func (t *Table[T]) statement(wanted access.Permission) string {
	if text, ok := t.statements.Load(wanted); ok {
		return text.(string)
	}
	text := "SELECT " + t.Columns + " FROM " + t.From + " WHERE id = $1"
	if wanted != access.None {
		text = "SELECT " + t.Columns + ", (" + t.condition(wanted) + ") FROM " + t.From + " WHERE id = $2"
	}
	t.statements.Store(wanted, text)
	return text
}

// granteeSQL holds for a grant g to the user $1 or to one of his roles.
const granteeSQL = `g.principal_id IN (SELECT $1 UNION ALL SELECT role_id FROM user_roles WHERE user_id = $1)`

// condition holds for the rows with which the user $1 may do what is wanted, by relation or by a grant on the record.
func (t *Table[T]) condition(wanted access.Permission) string {
	var b strings.Builder
	for _, relation := range t.Relations {
		if relation.Allows.Has(wanted) {
			b.WriteString(relation.SQL)
			b.WriteString(" OR ")
		}
	}
	fmt.Fprintf(&b, `EXISTS (SELECT 1 FROM grants g WHERE g.rec_id = %s.id AND g.rec_type = '%s' AND g.permission = '%s'
		AND `+granteeSQL+`)`, t.From, t.Type.Name, wanted)
	return b.String()
}

// Visible is the condition of a list: everything for a caller who may read all, else what he has a relation to or a
// grant on.
func (t *Table[T]) Visible(caller *access.Caller) list.Where {
	if caller.May(t.Type, access.ReadAll) {
		return list.Where{}
	}
	where := list.Where{
		Granted: fmt.Sprintf(`SELECT g.rec_id FROM grants g WHERE g.rec_type = '%s' AND g.permission = '%s' AND `+granteeSQL, t.Type.Name, access.Read),
		Args:    []any{caller.UserID},
		Tables:  []string{"grants", "user_roles"},
	}
	for _, relation := range t.Relations {
		if relation.Allows.Has(access.Read) {
			where.Any = append(where.Any, relation.SQL)
			where.Tables = append(where.Tables, relation.Tables...)
		}
	}
	return where
}
