package store

import (
	"context"
	"fmt"
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

// reader is a read-only connection of the pool.
type reader struct {
	conn *sqlite.Conn
	pool *pool
}

// pool holds the readers that are free.
type pool struct {
	free   chan *reader
	opened int
	closed chan struct{}
}

func openPool(path string) (*pool, error) {
	p := &pool{free: make(chan *reader, readers), closed: make(chan struct{})}
	for range readers {
		c, err := connect(path, sqlite.ReadOnly, readerPragmas)
		if err != nil {
			p.close()
			return nil, err
		}
		p.opened++
		p.free <- &reader{conn: c, pool: p}
	}
	return p, nil
}

// take waits for a free reader and binds it to the context.
func (p *pool) take(ctx context.Context) (*reader, error) {
	select {
	case <-p.closed:
		return nil, ErrClosed
	default:
	}
	select {
	case r := <-p.free:
		r.conn.SetContext(ctx)
		return r, nil
	default:
	}
	timeout := time.NewTimer(readerWait)
	defer timeout.Stop()
	select {
	case r := <-p.free:
		r.conn.SetContext(ctx)
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.closed:
		return nil, ErrClosed
	case <-timeout.C:
		return nil, fmt.Errorf("%w: no reader became free", ErrBusy)
	}
}

func (r *reader) release() {
	r.conn.ResetAll()
	r.conn.SetContext(context.Background())
	r.pool.free <- r
}

// close waits for the readers in use and closes all of them.
func (p *pool) close() {
	close(p.closed)
	for range p.opened {
		select {
		case r := <-p.free:
			r.conn.Close()
		case <-time.After(readerWait):
			return
		}
	}
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
	v := &View{reader: r, now: db.Now()}
	defer r.release()
	if err := runKept(r.conn, beginRead); err != nil {
		return err
	}
	defer func() {
		v.reader = nil
		r.conn.ResetAll()
		_ = runKept(r.conn, rollback) // nothing was written, so that its failure loses nothing
	}()
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
