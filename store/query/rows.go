// Package query runs statements on an engine: it binds Go values, steps through rows, and scans columns into Go variables.
package query

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

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

// Writer reads and writes, at one moment. *store.Tx implements it.
type Writer interface {
	Querier
	Exec(ctx context.Context, sql string, args ...any) (changed int64, err error)
}

// Scanner is a row whose columns a function reads.
type Scanner = interface{ Scan(dest ...any) error }

// Each calls read for each row of a statement, until it returns an error.
func Each(ctx context.Context, q Querier, read func(row Scanner) error, statement string, args ...any) error {
	rows, err := q.Query(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := read(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// All returns what scan returns for each row of a statement. The number of rows must be bounded.
func All[T any](ctx context.Context, q Querier, scan func(row Scanner) (T, error), statement string, args ...any) (found []T, err error) {
	err = Each(ctx, q, func(row Scanner) error {
		one, err := scan(row)
		found = append(found, one)
		return err
	}, statement, args...)
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Text reads the one text column of a row, for [All].
func Text(row Scanner) (text string, err error) {
	err = row.Scan(&text)
	return text, err
}

// Meta returns the value of a row of the table meta. known is false without such a row.
func Meta(ctx context.Context, q Querier, name string) (value string, known bool, err error) {
	err = q.QueryRow(ctx, engine.SelectMeta, name).Scan(&value)
	if errors.Is(err, engine.ErrNotFound) {
		return "", false, nil
	}
	return value, err == nil, err
}

// Places returns the placeholders from first to last: "$2, $3, $4".
func Places(first, last int) string {
	var b strings.Builder
	for number := first; number <= last; number++ {
		if number > first {
			b.WriteString(", ")
		}
		b.WriteString("$" + strconv.Itoa(number))
	}
	return b.String()
}

// Renumbered adds base to the numbers of the placeholders of a text. A dollar sign must not have another meaning in it.
func Renumbered(text string, base int) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		digits := len(after) - len(strings.TrimLeft(after, "0123456789"))
		number, _ := strconv.Atoi(after[:digits]) // digits alone
		b.WriteString("$" + strconv.Itoa(base+number))
		text = after[digits:]
	}
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

// scan reads the current row of s into the destinations, one for each column.
func scan(s engine.Statement, dest []any) error {
	if len(dest) != s.Columns() {
		return fmt.Errorf("scan: %d destinations for %d columns", len(dest), s.Columns())
	}
	for i, d := range dest {
		if err := scanOne(s, i, d); err != nil {
			return fmt.Errorf("scan column %d (%s): %w", i+1, s.Name(i), err)
		}
	}
	return nil
}

// ignored is the type of Ignored.
type ignored struct{}

// Ignored is the destination of a column that is not read.
var Ignored any = ignored{}

// ReusedText is the destination of a text whose memory is used again by the next scan. It cannot hold NULL.
type ReusedText []byte

// scanOne reads a column. NULL fits pointers to pointers, []byte, json.RawMessage and any, which become nil, and a
// sql.Scanner that accepts it. It is an error for every other destination.
func scanOne(s engine.Statement, i int, dest any) error {
	if dest == Ignored {
		return nil
	}
	kind := s.Type(i)
	null := kind == engine.Null
	switch d := dest.(type) {
	case *ReusedText:
		if kind != engine.Text {
			return fmt.Errorf("a value that is no text cannot be read into %T", dest)
		}
		*d = s.AppendText((*d)[:0], i)
		return nil
	case **string:
		return scanPointer(d, null, func(p *string) error { return scanOne(s, i, p) })
	case **clock.Time:
		return scanPointer(d, null, func(p *clock.Time) error { return scanOne(s, i, p) })
	case **int64:
		return scanPointer(d, null, func(p *int64) error { return scanOne(s, i, p) })
	case **int:
		return scanPointer(d, null, func(p *int) error { return scanOne(s, i, p) })
	case **bool:
		return scanPointer(d, null, func(p *bool) error { return scanOne(s, i, p) })
	case **float64:
		return scanPointer(d, null, func(p *float64) error { return scanOne(s, i, p) })
	case *[]byte:
		*d = nil
		if !null {
			*d = s.Bytes(i)
		}
		return nil
	case *json.RawMessage:
		*d = nil
		if !null {
			*d = s.Bytes(i)
		}
		return nil
	case sql.Scanner:
		return d.Scan(value(s, i))
	case *any:
		*d = value(s, i)
		return nil
	}
	if !null {
		return scanValue(s, i, kind, dest)
	}
	if v := reflect.ValueOf(dest); v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Pointer {
		v.Elem().SetZero()
		return nil
	}
	return fmt.Errorf("NULL cannot be read into %T", dest)
}

func scanPointer[T any](d **T, null bool, read func(*T) error) error {
	*d = nil
	if null {
		return nil
	}
	v := new(T)
	if err := read(v); err != nil {
		return err
	}
	*d = v
	return nil
}

// scanValue reads a column that is not NULL.
func scanValue(s engine.Statement, i int, kind engine.Type, dest any) error {
	if d, ok := dest.(*string); ok {
		*d = s.Text(i)
		return nil
	}
	if kind == engine.Text || kind == engine.Bytes {
		return scanText(s, i, dest)
	}
	switch d := dest.(type) {
	case *int64:
		*d = s.Int(i)
	case *int:
		*d = int(s.Int(i))
	case *clock.Time:
		*d = clock.Time(s.Int(i))
	case *bool:
		*d = s.Int(i) != 0
	case *float64:
		*d = s.Float(i)
	default:
		return scanOther(s, i, dest)
	}
	return nil
}

// scanText reads a text into types made from string. It does not convert a text to a number, as some engines would.
func scanText(s engine.Statement, i int, dest any) error {
	v := reflect.ValueOf(dest)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() == reflect.Pointer || v.Kind() == reflect.String {
		return scanOther(s, i, dest)
	}
	return fmt.Errorf("a text cannot be read into %T", dest)
}

// scanOther reads into types made from the basic ones.
func scanOther(s engine.Statement, i int, dest any) error {
	p := reflect.ValueOf(dest)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return fmt.Errorf("%T is not a pointer to a value", dest)
	}
	v := p.Elem()
	switch v.Kind() {
	case reflect.Pointer:
		target := reflect.New(v.Type().Elem())
		if err := scanOne(s, i, target.Interface()); err != nil {
			return err
		}
		v.Set(target)
	case reflect.String:
		v.SetString(s.Text(i))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(s.Int(i))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		v.SetUint(uint64(s.Int(i)))
	case reflect.Bool:
		v.SetBool(s.Int(i) != 0)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(s.Float(i))
	default:
		return fmt.Errorf("%T cannot be read", dest)
	}
	return nil
}

// value returns a column in the form that a sql.Scanner expects.
func value(s engine.Statement, i int) any {
	switch s.Type(i) {
	case engine.Integer:
		return s.Int(i)
	case engine.Boolean:
		return s.Int(i) != 0
	case engine.Float:
		return s.Float(i)
	case engine.Text:
		return s.Text(i)
	case engine.Bytes:
		return s.Bytes(i)
	default:
		return nil
	}
}

// bind sets the arguments of a statement.
func bind(s engine.Statement, args []any) error {
	if len(args) != s.Args() {
		return fmt.Errorf("statement takes %d arguments, not %d", s.Args(), len(args))
	}
	for i, arg := range args {
		if err := bindOne(s, i+1, arg); err != nil {
			return fmt.Errorf("argument $%d: %w", i+1, err)
		}
	}
	return nil
}

func bindOne(s engine.Statement, n int, arg any) error {
	switch v := arg.(type) {
	case nil:
		return s.BindNull(n)
	case string:
		return s.BindText(n, v)
	case int64:
		return s.BindInt(n, v)
	case int:
		return s.BindInt(n, int64(v))
	case clock.Time:
		return s.BindInt(n, int64(v))
	case bool:
		return s.BindBool(n, v)
	case float64:
		return s.BindFloat(n, v)
	case json.RawMessage:
		if v == nil {
			return s.BindNull(n)
		}
		return s.BindTextBytes(n, v)
	case []byte:
		if v == nil {
			return s.BindNull(n)
		}
		return s.BindBytes(n, v)
	case *string:
		if v == nil {
			return s.BindNull(n)
		}
		return s.BindText(n, *v)
	case *clock.Time:
		if v == nil {
			return s.BindNull(n)
		}
		return s.BindInt(n, int64(*v))
	default:
		return bindOther(s, n, arg)
	}
}

// bindOther binds values of rare types: those with a Value method, pointers, and types made from the basic ones.
func bindOther(s engine.Statement, n int, arg any) error {
	v := reflect.ValueOf(arg)
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return s.BindNull(n)
	}
	if valuer, ok := arg.(driver.Valuer); ok {
		value, err := valuer.Value()
		if err != nil {
			return err
		}
		if _, nested := value.(driver.Valuer); nested {
			return fmt.Errorf("%T returns another Valuer", arg)
		}
		return bindOne(s, n, value)
	}
	switch v.Kind() {
	case reflect.Pointer:
		return bindOne(s, n, v.Elem().Interface())
	case reflect.String:
		return s.BindText(n, v.String())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return s.BindInt(n, v.Int())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return s.BindInt(n, int64(v.Uint()))
	case reflect.Bool:
		return s.BindBool(n, v.Bool())
	case reflect.Float32, reflect.Float64:
		return s.BindFloat(n, v.Float())
	}
	return fmt.Errorf("%T cannot be stored", arg)
}
