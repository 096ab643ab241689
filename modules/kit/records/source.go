package records

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// source is a table without the type of its records. Its methods are compiled once, not for each table.
type source struct {
	recType       access.RecordType
	from, columns string
	relations     []Relation
	missing       apierr.Kind
	statements    *sync.Map // texts of statements, by access.Permission or by name
}

func (t *Table[T]) source() *source {
	return &source{t.Type, t.From, t.Columns, t.Relations, t.Missing, &t.statements}
}

// get reads one record by scan, if the caller of the context has the wanted permission. The scanned record counts only without an error.
func (s *source) get(ctx context.Context, q store.Querier, id string, wanted access.Permission, scan func(row Row) error) error {
	caller := access.From(ctx)
	if caller.May(s.recType, wanted) {
		return s.getUnchecked(ctx, q, id, scan)
	}
	row := rowWithAccess{Row: q.QueryRow(ctx, s.statement(wanted), caller.UserID, id)}
	err := scan(&row)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return s.missing
	case err != nil:
		return fmt.Errorf("read %s: %w", s.recType.Name, err)
	case !row.allowed:
		return apierr.NoAccess
	}
	return nil
}

func (s *source) getUnchecked(ctx context.Context, q store.Querier, id string, scan func(row Row) error) error {
	err := s.read(ctx, q, id, scan)
	if errors.Is(err, store.ErrNotFound) {
		return s.missing
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", s.recType.Name, err)
	}
	return nil
}

// read reads one record without an access check. It returns store.ErrNotFound.
func (s *source) read(ctx context.Context, q store.Querier, id string, scan func(row Row) error) error {
	return scan(q.QueryRow(ctx, s.statement(access.None), id))
}

func (s *source) granted(ctx context.Context, q store.Querier, id string, wanted access.Permission) (bool, error) {
	caller := access.From(ctx)
	if caller.May(s.recType, wanted) {
		return true, nil
	}
	var one int
	err := q.QueryRow(ctx, selectGrant, caller.UserID, id, s.recType.Name, wanted.String()).Scan(&one)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read a grant on %s: %w", s.recType.Name, err)
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
