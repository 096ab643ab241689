package sqlite

import (
	"context"

	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/internal/readers"
	"kontor/store/sqlite/internal/binding"
)

// poolSize is how many readers there are. A query keeps a core busy and seldom waits for the disk, so that more connections
// would only use memory.
const poolSize = 4

// reader is a read-only connection of the pool. While a statement runs, the connection calls Err to find out whether the
// statement must stop.
type reader struct {
	readers.Slot
	engine *Engine
	conn   *binding.Conn
}

// openPool connects the reader that the pool lends first. The others are connected when several queries run at once for the
// first time: each reads the whole schema, which takes about a millisecond and 0.5 MB. allowed rejects a goroutine that must
// not wait for a reader.
func (e *Engine) openPool(path string, allowed func() error) (*readers.Pool[*reader], error) {
	all := make([]*reader, poolSize)
	for i := range all {
		all[i] = &reader{engine: e}
	}
	if err := all[poolSize-1].open(path); err != nil {
		return nil, err
	}
	return readers.New(all, allowed), nil
}

// open connects a reader that is new or whose connection was closed.
func (r *reader) open(path string) error {
	conn, err := connect(path, binding.ReadOnly, readerPragmas)
	if err != nil {
		return err
	}
	r.conn = conn
	return nil
}

// Pooled returns the pool's part of the reader.
func (r *reader) Pooled() *readers.Slot { return &r.Slot }

// Prepare connects the reader if necessary and makes its statements end with the holder's context.
func (r *reader) Prepare() error {
	if r.conn == nil {
		if err := r.open(r.engine.dir.File(datadir.Database)); err != nil {
			return err
		}
	}
	r.conn.SetContext(r)
	return nil
}

// Revoked does nothing: the running statement asks Err.
func (r *reader) Revoked() {}

// release returns the reader to the pool, outside a transaction. A reader that stays in a transaction would show an old
// state to its next holders and keep the log from starting again, so its connection is closed.
func (r *reader) release() {
	r.conn.ResetAll()
	r.conn.SetContext(nil) // a context that has ended would interrupt the rollback
	if r.conn.InTransaction() {
		_ = r.engine.rollback(r) // nothing was written, so a failure loses nothing
	}
	if r.conn.InTransaction() {
		_ = r.conn.Close()
		r.conn = nil
	}
	r.engine.pool.Put(r)
}

// Close closes the connection.
func (r *reader) Close() {
	if r.conn != nil {
		r.conn.Close()
	}
}

// Prepare takes a reader from the pool and compiles a statement on it. Closing the statement releases the reader.
func (e *Engine) Prepare(ctx context.Context, sql string) (engine.Statement, error) {
	r, err := e.pool.Take(ctx)
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
	r, err := e.pool.Take(ctx)
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
