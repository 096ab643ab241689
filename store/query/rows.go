// Package query runs statements on an engine: it binds Go values, steps through rows, and scans columns into Go variables.
package query

import (
	"context"

	"kontor/store/clock"
	"kontor/store/engine"
)

// Querier runs statements that read. *store.DB, *View and *store.Tx implement it.
type Querier interface {
	// Query runs a statement that returns rows. Close the rows; reading them to the end closes them too.
	Query(ctx context.Context, sql string, args ...any) (*Rows, error)
	// QueryRow runs a statement that returns one row. Scan the row: it holds the statement until then.
	QueryRow(ctx context.Context, sql string, args ...any) *Row
	// Now returns the time by the store's clock. In a transaction and in a view it stays the same.
	Now() clock.Time
}

// Rows steps through the result of a query. It belongs to one goroutine.
type Rows struct {
	from  engine.Source
	stmt  engine.Statement // nil after the end
	run   uint64
	err   error
	first bool // the row that running the statement found was not returned yet
}

// Query runs a statement on a source.
func Query(ctx context.Context, from engine.Source, sql string, args []any) (*Rows, error) {
	s, err := from.Prepare(ctx, sql)
	if err != nil {
		return nil, err
	}
	run, more, err := start(s, args)
	if err != nil {
		return nil, from.Failed(err)
	}
	r := &Rows{from: from, stmt: s, run: run, first: more}
	if !more {
		r.Close()
	}
	return r, nil
}

// Exec runs a statement to its end and returns how many rows it changed.
func Exec(ctx context.Context, from engine.Source, sql string, args []any) (changed int64, err error) {
	s, err := from.Prepare(ctx, sql)
	if err != nil {
		return 0, err
	}
	_, more, err := start(s, args)
	if err != nil {
		return 0, from.Failed(err)
	}
	for more && err == nil {
		more, err = s.Step()
	}
	if err == nil {
		changed = s.Changed()
	}
	s.Close()
	if err != nil {
		return 0, from.Failed(err)
	}
	return changed, nil
}

// start binds the arguments and runs a statement up to its first row. After an error the statement is closed.
func start(s engine.Statement, args []any) (run uint64, more bool, err error) {
	run = s.Begin()
	if err = bind(s, args); err == nil {
		more, err = s.Step()
	}
	if err != nil {
		s.Close()
		return run, false, err
	}
	return run, more, nil
}

// Next goes to the next row and reports whether there is one. After false, Err returns the error that ended the rows.
func (r *Rows) Next() bool {
	if !r.open() {
		return false
	}
	if r.first {
		r.first = false
		return true
	}
	more, err := r.stmt.Step()
	if err != nil {
		r.err = r.from.Failed(err)
	}
	if !more {
		r.Close()
	}
	return more
}

// Scan reads the row into one destination for each column: *string, *int, *int64, *bool, *float64, *[]byte,
// *json.RawMessage, *Time, types made from these, pointers to such pointers where the column may be NULL, and sql.Scanner.
func (r *Rows) Scan(dest ...any) error {
	if !r.open() {
		return engine.ErrClosed
	}
	return scan(r.stmt, dest)
}

// Columns returns the number of columns, and 0 after the end.
func (r *Rows) Columns() int {
	if !r.open() {
		return 0
	}
	return r.stmt.Columns()
}

// Size returns how many bytes the texts in some columns of the current row take. Columns are counted from 0.
func (r *Rows) Size(columns []int) int {
	if !r.open() {
		return 0
	}
	size := 0
	for _, i := range columns {
		size += r.stmt.Size(i)
	}
	return size
}

// open reports whether the rows can be read. Rows that outlive their transaction cannot.
func (r *Rows) open() bool {
	if r.stmt == nil {
		return false
	}
	if !r.stmt.Running(r.run) {
		r.stmt, r.err = nil, engine.ErrClosed
		return false
	}
	return true
}

// Err returns the error that ended the rows early, or nil.
func (r *Rows) Err() error { return r.err }

// Close ends the query. A second Close does nothing.
func (r *Rows) Close() error {
	if r.stmt == nil {
		return nil
	}
	if r.stmt.Running(r.run) {
		r.stmt.Close()
	}
	r.stmt = nil
	return nil
}

// Row is the first row of a query.
type Row struct {
	stmt engine.Statement
	run  uint64
	err  error // returned by Scan
}

// NewRow runs a query for one row.
func NewRow(ctx context.Context, from engine.Source, sql string, args []any) *Row {
	s, err := from.Prepare(ctx, sql)
	if err != nil {
		return &Row{err: err}
	}
	run, more, err := start(s, args)
	switch {
	case err != nil:
		return &Row{err: from.Failed(err)}
	case !more:
		s.Close()
		return &Row{err: engine.ErrNotFound}
	}
	return &Row{stmt: s, run: run}
}

// Scan reads the row and ends the query. Without a row it returns ErrNotFound. A second Scan returns ErrClosed.
func (r *Row) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	if r.err = engine.ErrClosed; !r.stmt.Running(r.run) {
		return r.err
	}
	defer r.stmt.Close()
	return scan(r.stmt, dest)
}

// View runs several statements on one source, usually on one state of the database.
type View struct {
	from engine.Source
	now  clock.Time
}

// NewView returns a view of a source.
func NewView(from engine.Source, now clock.Time) *View { return &View{from: from, now: now} }

// Query runs a statement that returns rows.
func (v *View) Query(ctx context.Context, sql string, args ...any) (*Rows, error) {
	return Query(ctx, v.from, sql, args)
}

// QueryRow runs a statement that returns one row.
func (v *View) QueryRow(ctx context.Context, sql string, args ...any) *Row {
	return NewRow(ctx, v.from, sql, args)
}

// Now returns the time at which the view began.
func (v *View) Now() clock.Time { return v.now }
