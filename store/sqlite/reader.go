package sqlite

import (
	"context"
	"sync/atomic"
	"time"

	"kontor/store/engine"
	"kontor/store/sqlite/internal/binding"
)

const (
	// readers is the size of the pool. A query keeps a core busy and seldom waits for the disk, so that more connections
	// would only use memory.
	readers = 4
	// readerWait bounds the wait for a reader, so that code which queries while it still holds rows fails instead of
	// waiting forever.
	readerWait = 10 * time.Second
)

// reader is a read-only connection of the pool. While a statement runs, the connection calls Err to find out whether the
// statement must stop.
type reader struct {
	conn *binding.Conn
	pool *pool

	// These belong to the present holder and are changed under the pool's mutex.
	ctx     context.Context // steps of a statement take none, and must end with the one that it was prepared with
	turn    uint64          // grows: the reader that is held for longest has the lowest
	revoked atomic.Bool
}

// Err returns the error that ends the running statement: that of its context, or that its caller holds more than its share.
func (r *reader) Err() error {
	if r.revoked.Load() {
		return errRevoked
	}
	return r.ctx.Err()
}

// open connects a reader that is new or whose connection was closed.
func (r *reader) open() error {
	conn, err := connect(r.pool.path, binding.ReadOnly, readerPragmas)
	if err != nil {
		return err
	}
	r.conn = conn
	return nil
}

// release returns the reader to the pool, outside a transaction. A reader that stays in a transaction would show an old
// state to its next holders and keep the log from starting again, so its connection is closed.
func (r *reader) release() {
	r.conn.ResetAll()
	r.conn.SetContext(nil) // a context that has ended would interrupt the rollback
	if r.conn.InTransaction() {
		_ = r.pool.rollback(r) // nothing was written, so a failure loses nothing
	}
	if r.conn.InTransaction() {
		_ = r.conn.Close()
		r.conn = nil
	}
	r.pool.put(r)
}

// close closes the connection.
func (r *reader) close() {
	if r.conn != nil {
		r.conn.Close()
	}
}

// Prepare takes a reader from the pool and compiles a statement on it. Closing the statement releases the reader.
func (e *Engine) Prepare(ctx context.Context, sql string) (engine.Statement, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r, err := e.pool.take(ctx)
	if err != nil {
		return nil, err
	}
	s, err := prepare(r.conn, sql)
	if err != nil {
		r.release()
		return nil, err
	}
	s.reader = r
	return s, nil
}

// Failed returns the error of a statement.
func (e *Engine) Failed(err error) error { return err }

// view prepares statements in one read transaction.
type view struct{ reader *reader } // nil after the end

// View calls fn with a source whose statements see one state of the database. The log cannot start again while it runs.
func (e *Engine) View(ctx context.Context, fn func(engine.Source) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r, err := e.pool.take(ctx)
	if err != nil {
		return err
	}
	defer r.release()
	if err := runKept(r.conn, beginRead); err != nil {
		return err
	}
	v := &view{reader: r}
	defer func() { v.reader = nil }()
	return fn(v)
}

func (v *view) Prepare(_ context.Context, sql string) (engine.Statement, error) {
	if v.reader == nil {
		return nil, engine.ErrClosed
	}
	s, err := prepare(v.reader.conn, sql)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (v *view) Failed(err error) error { return err }
