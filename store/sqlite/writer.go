package sqlite

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"kontor/store/clock"
	"kontor/store/engine"
	"kontor/store/internal/jobs"
	"kontor/store/query"
	"kontor/store/sqlite/internal/binding"
)

// job is one call of Write.
type job struct {
	jobs.Job
	tx *tx // of the last run

	firstTx tx // of the first run, so that most jobs need no further allocation
}

// writer owns the connection that writes. One goroutine runs the jobs of all callers, one after another, and commits them in
// groups. The syncer makes each commit durable and answers the callers.
type writer struct {
	log      *slog.Logger
	clock    clock.Clock
	conn     *binding.Conn
	disk     *disk
	guard    engine.Guard
	versions *engine.Versions
	touches  *touches
	watches  *watches
	queue    *jobs.Queue[*job]
	ended    chan struct{} // closed when the last job is answered
	hooks    *jobs.Hooks

	position     position // of the newest commit
	lineage      Lineage
	lineageSaved bool  // false: the next commit saves it
	changed      int64 // rows that the connection had changed when the group began

	goroutine jobs.Goroutine
	progress  jobs.Progress

	group         []*job // of the open transaction
	useSavepoints bool   // for each job of the group
	retries       []*job // jobs whose transaction was lost; the next group begins with them
	onCommit      func() // called once, between the commit of the group and the next transaction; see Recorder
	// spare is the list for the next group. Holding it means that the syncer is idle.
	spare []*job

	syncer      *syncer
	checkpoints *checkpointer
	counters    counters
}

// Write puts a job into the queue and waits for its outcome.
func (e *Engine) Write(ctx context.Context, fn func(engine.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := e.writer
	if err := jobs.RejectWrite(&w.goroutine, w.hooks); err != nil {
		return err
	}
	j := &job{}
	j.Init(ctx, fn)
	if err := w.queue.Add(j); err != nil {
		return err
	}
	return j.Wait()
}

// InJob reports whether the calling goroutine runs a job.
func (e *Engine) InJob() bool { return e.writer.goroutine.IsCurrent() }

// rejectNestedRead returns ErrNested within a job.
func (w *writer) rejectNestedRead() error { return jobs.RejectRead(&w.goroutine) }

// serve runs the next group. It reports false once the queue is closed and empty.
func (w *writer) serve() (more bool) {
	if len(w.retries) > 0 {
		w.commitGroup(nil)
		return true
	}
	j, more := w.queue.Next()
	if !more {
		close(w.ended)
		return false
	}
	w.commitGroup(j)
	return true
}

// close waits until every accepted job is answered.
func (w *writer) close() {
	w.queue.Close()
	<-w.ended
}

// run runs a job. It reports whether the transaction is intact: it holds the writes of the jobs before, and none of a failed
// job.
//
// A job that fails after it has written loses the transaction of the whole group. A savepoint for each job would undo it
// alone, but copies the changed pages at every write, and jobs that fail nearly always do so before they write. After a
// loss the other jobs run once more, each with a savepoint.
func (w *writer) run(j *job) (intact bool) {
	if ok, err := j.Begin(); !ok {
		if err != nil {
			w.answer(j, err)
		}
		return true
	}
	defer j.Ended()
	w.group = append(w.group, j)
	w.guard.Save()
	changed := w.conn.TotalChanged()
	w.progress.Begin(&w.progress.Writer)
	if j.Err = w.setSavepoint(); j.Err == nil {
		j.tx = &j.firstTx
		if j.Runs > 1 { // an earlier Tx that the function has kept must stay closed
			j.tx = &tx{}
		}
		j.tx.begin(j, w.versions, w.conn)
		if j.Err = j.Call(j.tx); j.Err == nil {
			j.Err = w.releaseSavepoint()
		}
		j.tx.ended = true
		w.conn.ResetAll()
	}
	if j.Err == nil {
		return true
	}
	w.guard.Restore()
	w.noteFailure(j.Err)
	intact = w.conn.InTransaction()
	if w.useSavepoints {
		intact = intact && runKept(w.conn, rollbackTo) == nil && runKept(w.conn, release) == nil
	} else {
		intact = intact && w.conn.TotalChanged() == changed
	}
	if !intact {
		w.group = w.group[:len(w.group)-1]
		w.answer(j, j.Err)
	}
	return intact
}

func (w *writer) setSavepoint() error {
	if !w.useSavepoints {
		return nil
	}
	return runKept(w.conn, savepoint)
}

func (w *writer) releaseSavepoint() error {
	if !w.useSavepoints {
		return nil
	}
	return runKept(w.conn, release)
}

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
func (s source) Tables(ctx context.Context) ([]string, error) {
	return query.All(ctx, query.NewView(s, 0), query.Text, selectTableNames)
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

// readMeta reads a row of the table meta.
func readMeta(c *binding.Conn, name string) (value string, known bool, err error) {
	return query.Meta(context.Background(), query.NewView(source{c}, 0), name)
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

// tx is the transaction of one run of a job. It implements engine.Tx.
type tx struct {
	job      *job
	versions *engine.Versions
	conn     *binding.Conn
	err      error // of the first statement that failed
	ended    bool
	written  []*engine.Table

	// The first elements of the list, so that most transactions need no further allocation.
	writtenSpace [8]*engine.Table
}

// begin prepares a new transaction.
func (t *tx) begin(j *job, versions *engine.Versions, conn *binding.Conn) {
	t.job, t.versions, t.conn = j, versions, conn
	t.written = t.writtenSpace[:0]
}

// Prepare compiles a statement and records the tables that it writes to. The context does not interrupt the statement: that
// would end the transaction of the whole group.
func (t *tx) Prepare(_ context.Context, sql string) (engine.Statement, error) {
	if t.ended {
		return nil, fmt.Errorf("transaction: %w", engine.ErrClosed)
	}
	if t.err != nil {
		return nil, fmt.Errorf("transaction failed before: %w", t.err)
	}
	s, err := prepare(t.conn, sql)
	if err != nil {
		return nil, t.Failed(err)
	}
	if !s.parsed {
		s.written, s.parsed = t.versions.Written(sql), true
	}
	for _, table := range s.written {
		if !slices.Contains(t.written, table) {
			t.written = append(t.written, table)
		}
	}
	return s, nil
}

// Failed records the error of a statement: the transaction accepts no further ones.
func (t *tx) Failed(err error) error {
	if err != nil && t.err == nil {
		t.err = err
	}
	return err
}

// Err returns the error of the first statement that failed.
func (t *tx) Err() error { return t.err }

// AfterCommit registers a function to call after the commit.
func (t *tx) AfterCommit(f func()) { t.job.Hooks = append(t.job.Hooks, f) }

// Announce registers the receivers of this process: there are no other nodes.
func (t *tx) Announce(a engine.Announcement) {
	if a.Local != nil {
		t.AfterCommit(a.Local)
		return
	}
	topic, key := a.Topic, a.Key
	t.AfterCommit(func() { topic.Receive(key) })
}
