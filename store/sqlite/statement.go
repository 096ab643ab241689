package sqlite

import (
	"context"

	"kontor/store/engine"
	"kontor/store/query"
	"kontor/store/sqlite/internal/binding"
)

// statement implements engine.Statement. There is one for each compiled statement of a connection, kept with it.
type statement struct {
	*binding.Stmt
	conn    *binding.Conn
	reader  *reader         // released by Close; nil in a transaction or view
	parsed  bool            // written is known
	written []*engine.Table // the tables that it writes to
}

// prepare compiles a statement on a connection, or finds it compiled.
func prepare(c *binding.Conn, sql string) (*statement, error) {
	stmt, err := c.Prepare(sql)
	if err != nil {
		return nil, translate(err)
	}
	if s, ok := stmt.Tag.(*statement); ok {
		return s, nil
	}
	s := &statement{Stmt: stmt, conn: c}
	stmt.Tag = s
	return s, nil
}

// Step runs the statement up to its next row.
func (s *statement) Step() (bool, error) {
	more, err := s.Stmt.Step()
	return more, translate(err)
}

// Changed returns how many rows the run changed.
func (s *statement) Changed() int64 {
	if len(s.written) == 0 {
		return 0
	}
	return s.conn.Changed()
}

// types are the engine's types by SQLite's storage classes.
var types = [...]engine.Type{
	binding.Integer: engine.Integer, binding.Float: engine.Float, binding.Text: engine.Text,
	binding.Blob: engine.Bytes, binding.Null: engine.Null,
}

// Type returns the type of a column in the current row.
func (s *statement) Type(i int) engine.Type { return types[s.Stmt.Type(i)] }

// Close ends the run and releases the reader.
func (s *statement) Close() {
	s.Reset()
	if r := s.reader; r != nil {
		s.reader = nil
		r.release()
	}
}

// source prepares statements on one connection that belongs to the caller.
type source struct{ conn *binding.Conn }

func (s source) Prepare(_ context.Context, sql string) (engine.Statement, error) {
	p, err := prepare(s.conn, sql)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (s source) Failed(err error) error { return err }

// Tables returns the names of the tables.
func (s source) Tables(ctx context.Context) (names []string, err error) {
	rows, err := query.Query(ctx, s, selectTableNames, nil)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// Transact runs fn in a write transaction on the connection.
func (s source) Transact(fn func() error) error {
	if err := s.conn.Run(beginWrite); err != nil {
		return translate(err)
	}
	err := fn()
	if err == nil {
		err = translate(s.conn.Run(commit))
	}
	if err != nil && s.conn.InTransaction() {
		// The error of fn says more than that of a rollback, which SQLite may have done itself.
		_ = s.conn.Run(rollback)
	}
	return err
}

// readRow reads one row on a connection that belongs to the caller.
func readRow(c *binding.Conn, sql string, args []any, dest ...any) error {
	return query.NewRow(context.Background(), source{c}, sql, args).Scan(dest...)
}

// putMeta writes a row of the table meta.
func putMeta(c *binding.Conn, name, value string) error {
	_, err := query.Exec(context.Background(), source{c}, engine.UpsertMeta, []any{name, value})
	return err
}

// runKept runs a statement without arguments and rows, which stays compiled.
func runKept(c *binding.Conn, sql string) error {
	s, err := c.Prepare(sql)
	if err != nil {
		return translate(err)
	}
	s.Begin()
	_, err = s.Step()
	s.Reset()
	return translate(err)
}
