package store

import (
	"context"

	"kontor/store/internal/sqlite"
)

// Querier reads: *DB, on a connection of its pool, *View and *Tx.
type Querier interface {
	// Query runs a statement that gives rows. Close the rows; reading them to the end closes them too.
	Query(ctx context.Context, sql string, args ...any) (*Rows, error)
	// QueryRow prepares to read one row: the statement runs when the row is scanned.
	QueryRow(ctx context.Context, sql string, args ...any) *Row
	// Now is the time by the store's clock, the same throughout a transaction.
	Now() Time
}

// Rows steps through the result of a query. It belongs to one goroutine.
type Rows struct {
	from   rowSource
	stmt   *sqlite.Stmt
	run    uint64
	reader *reader // to give back at the end; nil in a transaction or view
	err    error
	first  bool // Next has not looked at the row that starting found
}

// start runs s with args up to its first row.
func start(s *sqlite.Stmt, args []any) (run uint64, more bool, err error) {
	run = s.Begin()
	if err := bind(s, args); err != nil {
		s.Reset()
		return run, false, err
	}
	more, err = s.Step()
	if err != nil {
		s.Reset()
		return run, false, translate(err)
	}
	return run, more, nil
}

// Next goes to the next row and tells whether there is one. After false, Err tells why.
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
		r.err = r.from.note(translate(err))
	}
	if !more {
		r.Close()
	}
	return more
}

// Scan reads the row into one destination for each column: *string, *int, *int64, *bool, *float64,
// *[]byte, *json.RawMessage, *Time, types made from these, pointers to such pointers where the column
// may be NULL, and sql.Scanner.
func (r *Rows) Scan(dest ...any) error {
	if !r.open() {
		return ErrClosed
	}
	return scan(r.stmt, dest)
}

// Size is how many bytes the texts in some columns of the current row take, counted from 0.
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

// open tells whether the rows can be read. Rows that outlive their transaction cannot.
func (r *Rows) open() bool {
	if r.stmt == nil {
		return false
	}
	if !r.stmt.Running(r.run) {
		r.stmt, r.err = nil, ErrClosed
		return false
	}
	return true
}

// Err tells what ended the rows before their end.
func (r *Rows) Err() error { return r.err }

// Close ends the query. It may be called again.
func (r *Rows) Close() error {
	if r.stmt == nil {
		return nil
	}
	if r.stmt.Running(r.run) {
		r.stmt.Reset()
	}
	r.stmt = nil
	if r.reader != nil {
		r.reader.release()
		r.reader = nil
	}
	return nil
}

// Row is a query for one row. Nothing has run before Scan.
type Row struct {
	ctx  context.Context
	from rowSource
	sql  string
	args []any
}

// rowSource is what rows come from.
type rowSource interface {
	// statement compiles; with a reader, that is to be released after the run.
	statement(ctx context.Context, sql string) (*sqlite.Stmt, *reader, error)
	// note hears of a run that failed and gives the error back.
	note(err error) error
}

// Scan runs the query and reads its first row. Without a row it gives ErrNotFound.
func (r *Row) Scan(dest ...any) error {
	s, reader, err := r.from.statement(r.ctx, r.sql)
	if err != nil {
		return err
	}
	if reader != nil {
		defer reader.release()
	}
	_, more, err := start(s, r.args)
	if err != nil {
		return r.from.note(err)
	}
	defer s.Reset()
	if !more {
		return ErrNotFound
	}
	return scan(s, dest)
}

// query runs sql on a source.
func query(ctx context.Context, from rowSource, sql string, args []any) (*Rows, error) {
	s, reader, err := from.statement(ctx, sql)
	if err != nil {
		return nil, err
	}
	run, more, err := start(s, args)
	if err != nil {
		if reader != nil {
			reader.release()
		}
		return nil, from.note(err)
	}
	r := &Rows{from: from, stmt: s, run: run, reader: reader, first: more}
	if !more {
		r.Close()
	}
	return r, nil
}
