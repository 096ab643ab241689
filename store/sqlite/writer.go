package sqlite

import (
	"context"
	"slices"
	"sync/atomic"

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
}

// writer owns the connection that writes. It commits the jobs of all callers in groups. The syncer makes each commit durable
// and answers the callers.
type writer struct {
	jobs.Writer[*job]
	clock    clock.Clock
	conn     *binding.Conn
	disk     *disk
	guard    engine.Guard
	versions *engine.Versions
	touches  *touches
	watches  *watches

	position     position // of the newest commit
	lineage      Lineage
	lineageSaved bool  // false: the next commit saves it
	changed      int64 // rows that the connection had changed when the group began

	onCommit func() // called once, between the commit of the group and the next transaction; see Recorder
	// spare is the list for the next group. Holding it means that the syncer is idle.
	spare []*job

	syncer      *syncer
	checkpoints *checkpointer
	damaged     atomic.Pointer[error] // set once and never cleared
}

// Write puts a job into the queue and waits for its outcome.
func (e *Engine) Write(ctx context.Context, fn func(engine.Tx) error) error {
	return e.writer.Write(ctx, &job{}, fn)
}

// InJob reports whether the calling goroutine runs a job.
func (e *Engine) InJob() bool { return e.writer.InJob() }

// Run runs a job.
//
// A job that fails after it has written loses the transaction of the whole group. A savepoint for each job would undo it
// alone, but copies the changed pages at every write, and jobs that fail nearly always do so before they write. After a
// loss the other jobs run once more, each with a savepoint.
func (w *writer) Run(j *job) (intact bool) {
	w.guard.Save()
	changed := w.conn.TotalChanged()
	if j.Err = w.withSavepoint(savepoint); j.Err == nil {
		j.tx = &tx{Tx: jobs.Tx{Job: &j.Job}, versions: w.versions, conn: w.conn, written: make([]*engine.Table, 0, usualTables)}
		if j.Err = j.Call(j.tx); j.Err == nil {
			j.Err = w.withSavepoint(release)
		}
		j.tx.Ended = true
		w.conn.ResetAll()
	}
	if j.Err == nil {
		return true
	}
	w.guard.Restore()
	w.NoteFailure(j.Err)
	intact = w.conn.InTransaction()
	if w.UseSavepoints {
		intact = intact && runKept(w.conn, rollbackTo) == nil && runKept(w.conn, release) == nil
	} else {
		intact = intact && w.conn.TotalChanged() == changed
	}
	if !intact {
		w.Group = w.Group[:len(w.Group)-1]
		w.Answer(j, j.Err)
	}
	return intact
}

// usualTables is the number of tables for whose list a transaction needs one allocation.
const usualTables = 8

// withSavepoint runs a statement about the savepoint of a job, if it has one.
func (w *writer) withSavepoint(statement string) error {
	if !w.UseSavepoints {
		return nil
	}
	return runKept(w.conn, statement)
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
	jobs.Tx
	versions *engine.Versions
	conn     *binding.Conn
	written  []*engine.Table
}

// Prepare compiles a statement and records the tables that it writes to. The context does not interrupt the statement: that
// would end the transaction of the whole group.
func (t *tx) Prepare(_ context.Context, sql string) (engine.Statement, error) {
	if err := t.Open(); err != nil {
		return nil, err
	}
	s, err := prepare(t.conn, sql)
	if err != nil {
		return nil, t.Failed(err)
	}
	if !s.parsed {
		s.written, s.parsed = t.versions.Written(sql), true
	}
	t.written = addMissing(t.written, s.written)
	return s, nil
}

// addMissing adds the elements of another list that a list does not have.
func addMissing[T comparable](list, others []T) []T {
	for _, v := range others {
		if !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// Announce registers the receivers of this process: there are no other nodes.
func (t *tx) Announce(a engine.Announcement) {
	if a.Local != nil {
		t.AfterCommit(a.Local)
		return
	}
	topic, key := a.Topic, a.Key
	t.AfterCommit(func() { topic.Receive(key) })
}
