// Package records reads and changes the records of one type with the caller's access checked in the same statement. Each
// module with records declares one [Table]. Reading a record, the condition of its lists and the answers to permission checks
// all come from that declaration, so that they cannot differ.
//
// A caller may access a record by a grant on the type, a relation to the record (such as its creator), or a grant on the
// record. Grants are to the caller or to one of the caller's roles.
//
// The package also compares records with the audit trail ([Proof], [Check]) and bounds what one user may store ([Quota]). It
// owns the table storage_usage. Grants and roles held are read through the views permissions (published by rbac) and
// held_roles (published by directory).
package records

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"kontor/modules/kit/list"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// Row is a row for a scanner.
type Row = list.Row

// Relation is a relation of users to records that grants permissions without a stored grant.
type Relation struct {
	Name   string // one of [access.RelationNames]
	Allows access.Permission
	SQL    string   // condition on a row of the table; $1 is the user's id
	Users  string   // SELECT of the users who have the relation to the record $1; empty if SQL compares one column: "user_id = $1"
	Tables []string // further tables that the condition reads
}

// Created is the relation of creators to records of a table with a column created_by.
var Created = Relation{Name: access.RelationCreator, Allows: access.Read | access.Update | access.Delete, SQL: "created_by = $1"}

// Table declares where the records of a type are and how they are read.
type Table[T any] struct {
	Type      access.RecordType
	From      string // the table; its primary key is the column id
	Columns   string // what Scan reads, separated by commas
	Scan      func(row Row) (T, error)
	Relations []Relation
	Missing   apierr.Kind // the error for an unknown id
	// Record returns the form of a row that audit digests cover; nil: the row as the API answers it.
	Record func(row T) store.Record

	statements sync.Map // texts of statements, by access.Permission or by name
}

// Get reads one record if the caller of the context has the wanted permission. It returns Missing for an unknown id and
// apierr.NoAccess without the permission.
func (t *Table[T]) Get(ctx context.Context, q store.Querier, id string, wanted access.Permission) (T, error) {
	caller := access.From(ctx)
	if caller.May(t.Type, wanted) {
		return t.GetUnchecked(ctx, q, id)
	}
	row := rowWithAccess{Row: q.QueryRow(ctx, t.statement(wanted), caller.UserID, id)}
	record, err := t.Scan(&row)
	if err == nil && !row.allowed {
		err = apierr.NoAccess
	}
	return t.found(record, err)
}

// GetUnchecked reads one record without an access check. It returns Missing for an unknown id.
func (t *Table[T]) GetUnchecked(ctx context.Context, q store.Querier, id string) (T, error) {
	return t.found(t.read(ctx, q, id))
}

// found returns a record, or nothing of it with an error.
func (t *Table[T]) found(record T, err error) (T, error) {
	var zero T
	switch {
	case err == nil:
		return record, nil
	case errors.Is(err, store.ErrNotFound):
		return zero, t.Missing
	case errors.Is(err, apierr.NoAccess):
		return zero, err
	}
	return zero, fmt.Errorf("read %s: %w", t.Type.Name, err)
}

// read reads one record without an access check. It returns store.ErrNotFound.
func (t *Table[T]) read(ctx context.Context, q store.Querier, id string) (T, error) {
	return t.Scan(q.QueryRow(ctx, t.statement(access.None), id))
}

// Granted reports whether the caller has the permission by a grant on the type or on the record. Relations do not count.
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

// rowWithAccess is a row whose last column, which the module's scanner does not read, is the caller's access to the record.
type rowWithAccess struct {
	*store.Row
	allowed bool
}

// Scan reads the columns and the access.
func (r *rowWithAccess) Scan(dest ...any) error {
	return r.Row.Scan(append(append(make([]any, 0, len(dest)+1), dest...), &r.allowed)...)
}
