package store

import (
	"context"
	"sync/atomic"
	"time"

	"kontor/store/internal/sqlite"
)

const (
	// readers is the size of the pool. A query keeps a core busy and never waits for the disk for
	// long, so that more connections than this only use memory.
	readers = 4
	// readerWait bounds the wait for a reader, so that code which queries while it still holds rows
	// fails instead of standing still.
	readerWait = 10 * time.Second
)

// reader is a read-only connection of the pool. While it is held it is also what the connection asks, as the query runs,
// whether to go on.
type reader struct {
	conn *sqlite.Conn
	pool *pool

	// Of the one who holds it; changed under the pool's mutex.
	ctx     context.Context
	turn    uint64 // counts up: the reader that is held for longest has the lowest
	revoked atomic.Bool
}

// Err ends the running query: with the error of its context, or because its caller holds more than its share.
func (r *reader) Err() error {
	if r.revoked.Load() {
		return errRevoked
	}
	return r.ctx.Err()
}

// open connects a reader that is new or whose connection had to be closed.
func (r *reader) open() error {
	conn, err := connect(r.pool.path, sqlite.ReadOnly, readerPragmas)
	if err != nil {
		return err
	}
	r.conn = conn
	return nil
}

// release gives the reader back, without a transaction. One that is still in a transaction would show its next holders
// an old state of the database and keep the log from starting again: its connection is closed.
func (r *reader) release() {
	r.conn.ResetAll()
	r.conn.SetContext(nil) // else a context that has ended would end the rollback, too
	if r.conn.InTransaction() {
		_ = r.pool.rollback(r) // nothing was written, so that its failure loses nothing
	}
	if r.conn.InTransaction() {
		_ = r.conn.Close()
		r.conn = nil
	}
	r.pool.put(r)
}

// statement takes a reader from the pool and compiles sql on it.
func (p *pool) statement(ctx context.Context, sql string) (*sqlite.Stmt, *reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	r, err := p.take(ctx)
	if err != nil {
		return nil, nil, err
	}
	s, err := r.conn.Prepare(sql)
	if err != nil {
		r.release()
		return nil, nil, translate(err)
	}
	return s, r, nil
}

func (p *pool) note(err error) error { return err }

// View reads several statements from one state of the database.
type View struct {
	reader *reader
	now    Time
}

// View gives fn one reader and one state of the database: what commits meanwhile is not seen. Keep it
// short, for the log of changes cannot be reset under it.
func (db *DB) View(ctx context.Context, fn func(v *View) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r, err := db.pool.take(ctx)
	if err != nil {
		return err
	}
	defer r.release()
	if err := runKept(r.conn, beginRead); err != nil {
		return err
	}
	v := &View{reader: r, now: db.Now()}
	defer func() { v.reader = nil }()
	return fn(v)
}

// Query runs a statement that gives rows.
func (v *View) Query(ctx context.Context, sql string, args ...any) (*Rows, error) {
	return query(ctx, v, sql, args)
}

// QueryRow prepares to read one row.
func (v *View) QueryRow(ctx context.Context, sql string, args ...any) *Row {
	return &Row{ctx: ctx, from: v, sql: sql, args: args}
}

// Now is the time at which the view began.
func (v *View) Now() Time { return v.now }

func (v *View) statement(_ context.Context, sql string) (*sqlite.Stmt, *reader, error) {
	if v.reader == nil {
		return nil, nil, ErrClosed
	}
	s, err := v.reader.conn.Prepare(sql)
	return s, nil, translate(err)
}

func (v *View) note(err error) error { return err }

// runKept runs a statement without arguments and rows, compiled once for the connection.
func runKept(c *sqlite.Conn, sql string) error {
	s, err := c.Prepare(sql)
	if err != nil {
		return translate(err)
	}
	s.Begin()
	_, err = s.Step()
	s.Reset()
	return translate(err)
}
