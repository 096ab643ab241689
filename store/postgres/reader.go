package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"kontor/store/engine"
	"kontor/store/internal/readers"
)

// defaultReaders is the size of the pool. A query waits for the server most of the time, so that there are more readers than
// cores.
const defaultReaders = 8

// reader is a read-only connection of the pool.
type reader struct {
	slot readers.Slot
	e    *Engine
	conn *conn // nil while it is not connected

	target atomic.Pointer[conn] // conn, for other goroutines
	stop   func() bool          // ends the watch of the holder's context
	onEnd  func()               // called when that context has ended
	ended  chan struct{}        // receives a value after each call of onEnd
}

func newReader(e *Engine) *reader {
	r := &reader{e: e, ended: make(chan struct{}, 1)}
	r.onEnd = func() {
		r.interrupt()
		r.ended <- struct{}{}
	}
	return r
}

// interrupt ends the running statement.
func (r *reader) interrupt() {
	if c := r.target.Load(); c != nil {
		c.interrupt()
	}
}

// Pooled returns the pool's part of the reader.
func (r *reader) Pooled() *readers.Slot { return &r.slot }

// Prepare connects the reader if necessary, and makes its statements end with the holder's context.
func (r *reader) Prepare() error {
	if r.conn == nil || r.conn.broken != nil || r.conn.losses != r.e.losses.Load() {
		if err := r.connect(); err != nil {
			return err
		}
	}
	r.watch()
	return nil
}

// connect replaces the connection.
func (r *reader) connect() error {
	r.Close()
	ctx, cancel := context.WithTimeout(r.slot.Context(), connectWait)
	defer cancel()
	losses := r.e.losses.Load()
	pg, err := r.e.connect(ctx, readerSettings, r.e.verify)
	if err != nil {
		if ended := r.slot.Err(); ended != nil {
			return ended
		}
		return err
	}
	r.conn = newConn(pg, &r.e.texts)
	r.conn.ended, r.conn.losses = r.slot.Err, losses
	r.target.Store(r.conn)
	return nil
}

// watch makes the end of the holder's context end the running statement, until unwatch.
func (r *reader) watch() {
	if ctx := r.slot.Context(); ctx.Done() != nil {
		r.stop = context.AfterFunc(ctx, r.onEnd)
	}
}

func (r *reader) unwatch() {
	if r.stop != nil && !r.stop() {
		<-r.ended
	}
	r.stop = nil
}

// Revoked ends the running statement.
func (r *reader) Revoked() { r.interrupt() }

// Close closes the connection.
func (r *reader) Close() {
	if r.conn != nil {
		r.target.Store(nil)
		r.conn.close()
		r.conn = nil
	}
}

// release returns the reader to the pool, outside a transaction.
func (r *reader) release() {
	c := r.conn
	if c == nil { // it could not be replaced
		r.unwatch()
		r.e.pool.Put(r)
		return
	}
	c.closeStatements()
	c.active, c.opening = nil, ""
	c.drain()
	r.unwatch()
	if c.status != 'I' && c.broken == nil {
		c.ask(rollback, nil)
		_ = c.exchange() // nothing was written, so a failure loses nothing
	}
	c.afterCancel()
	c.failed = failure{}
	if c.status != 'I' || c.broken != nil {
		r.Close()
	}
	r.e.pool.Put(r)
}

// Prepare takes a reader from the pool. Closing the statement releases the reader.
func (e *Engine) Prepare(ctx context.Context, sql string) (engine.Statement, error) {
	r, err := e.pool.Take(ctx)
	if err != nil {
		return nil, err
	}
	return r.conn.statement(sql, r), nil
}

// Failed returns the error of a statement.
func (e *Engine) Failed(err error) error { return err }

// begin runs a statement. If the connection was lost while it was idle, or the schema has changed, it runs again.
func (r *reader) begin(s *statement) (more bool, err error) {
	opening := r.conn.opening
	more, err = s.start()
	if err == nil || r.slot.Err() != nil {
		return more, err
	}
	switch {
	case r.conn.broken != nil:
		if err := r.replace(s, opening); err != nil {
			return false, err
		}
	case isStale(err) && opening == "": // else the transaction has failed
		r.conn.reset()
	default:
		return false, err
	}
	s.err = nil
	return s.start()
}

// replace connects the reader again for a statement that has begun, or for the transaction that it opens.
func (r *reader) replace(s *statement, opening string) error {
	r.unwatch()
	r.conn.afterCancel()
	if err := r.connect(); err != nil {
		return err
	}
	r.watch()
	s.conn, s.entry = r.conn, r.conn.entry(s.entry.text.sql)
	r.conn.open = append(r.conn.open, s)
	r.conn.opening = opening
	return nil
}

// isStale reports whether a statement must be prepared again, because the schema has changed or the server has lost it.
func isStale(err error) bool { return hasCode(err, codeFeature, codeUnknownStatement) }

// failed returns the error that ends the holder's statements rather than what it caused.
func (r *reader) failed(err error) error {
	if ended := r.slot.Err(); ended != nil {
		return ended
	}
	if errors.Is(err, errSkipped) && r.conn != nil && r.conn.failed.err != nil {
		err = r.conn.failed.err
	}
	return translate(err)
}

func (r *reader) inTransaction() bool { return false }

func (r *reader) closed() { r.release() }

const (
	beginView = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	rollback  = "ROLLBACK"
)

// view prepares statements in one read transaction.
type view struct {
	reader *reader // nil after the end
	begun  bool
}

// View calls fn with a source whose statements see one state of the database. The transaction begins together with its first
// statement.
func (e *Engine) View(ctx context.Context, fn func(engine.Source) error) error {
	r, err := e.pool.Take(ctx)
	if err != nil {
		return err
	}
	defer r.release()
	r.conn.opening = beginView
	v := &view{reader: r}
	defer func() { v.reader = nil }()
	return fn(v)
}

func (v *view) Prepare(_ context.Context, sql string) (engine.Statement, error) {
	if v.reader == nil || v.reader.conn == nil {
		return nil, fmt.Errorf("view: %w", engine.ErrClosed)
	}
	return v.reader.conn.statement(sql, v), nil
}

func (v *view) Failed(err error) error { return err }

// begin runs a statement. The first one runs again after the connection was lost.
func (v *view) begin(s *statement) (more bool, err error) {
	if v.reader == nil {
		return false, engine.ErrClosed
	}
	if v.begun {
		return s.start()
	}
	v.begun = true
	return v.reader.begin(s)
}

func (v *view) failed(err error) error {
	if v.reader == nil {
		return engine.ErrClosed
	}
	return v.reader.failed(err)
}

func (v *view) inTransaction() bool { return true }

func (v *view) closed() {}

// closeStatements ends the runs that are still open.
func (c *conn) closeStatements() {
	for len(c.open) > 0 {
		s := c.open[len(c.open)-1]
		s.owner = discarded{}
		s.Close()
	}
}

// discarded owns statements whose transaction has ended.
type discarded struct{}

func (discarded) begin(*statement) (bool, error) { return false, engine.ErrClosed }
func (discarded) failed(err error) error         { return err }
func (discarded) inTransaction() bool            { return true }
func (discarded) closed()                        {}

// memoryPause is the time between two writes of the file while commits are counted. A node that is killed may forget the last ones.
const memoryPause = time.Second

// memory keeps a sighting, so that a node remembers it after a restart. A nil memory keeps nothing.
type memory struct {
	kept engine.Memory
	log  *slog.Logger

	mu      sync.Mutex
	waiting *sighting // for the timer
	timer   *time.Timer

	disk    sync.Mutex // held while the file is written
	last    sighting
	failing bool
	closed  bool
}

// openMemory returns a memory, and what it holds.
func openMemory(kept engine.Memory, log *slog.Logger) (*memory, sighting, error) {
	if kept == (engine.Memory{}) {
		return nil, sighting{}, nil
	}
	m := &memory{kept: kept, log: log}
	data, err := kept.Read()
	if err == nil && data != nil {
		err = json.Unmarshal(data, &m.last)
	}
	if err != nil {
		return nil, sighting{}, fmt.Errorf("%s cannot be read, which says what this node has seen of the database: %w; delete it if the database server is the right one", kept.Name(), err)
	}
	return m, m.last, nil
}

// keepNow keeps a sighting at once.
func (m *memory) keepNow(s sighting) {
	if m == nil {
		return
	}
	m.mu.Lock()
	m.waiting = nil
	m.mu.Unlock()
	m.write(s)
}

// keep keeps a sighting soon.
func (m *memory) keep(s sighting) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	first := m.waiting == nil
	m.waiting = &s
	if first {
		m.timer = time.AfterFunc(memoryPause, m.flush)
	}
}

// flush writes what waits.
func (m *memory) flush() {
	m.mu.Lock()
	s := m.waiting
	m.waiting = nil
	m.mu.Unlock()
	if s != nil {
		m.write(*s)
	}
}

// close writes what waits. Nothing is written later.
func (m *memory) close() {
	if m == nil {
		return
	}
	m.flush()
	m.mu.Lock()
	if m.timer != nil {
		m.timer.Stop()
	}
	m.mu.Unlock()
	m.disk.Lock()
	defer m.disk.Unlock()
	m.closed = true
}

// write keeps a sighting. A failure is logged once: the node remembers without the file as long as it runs.
func (m *memory) write(s sighting) {
	m.disk.Lock()
	defer m.disk.Unlock()
	if s == m.last || m.closed {
		return
	}
	data, err := json.Marshal(s)
	if err == nil {
		err = m.kept.Write(append(data, '\n'))
	}
	if err != nil {
		if !m.failing {
			m.log.Error("what this node has seen of the database cannot be kept for its next start", "file", m.kept.Name(), "err", err)
		}
		m.failing = true
		return
	}
	m.last, m.failing = s, false
}
