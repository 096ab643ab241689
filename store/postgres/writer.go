package postgres

import (
	"context"
	"slices"

	"kontor/store/engine"
	"kontor/store/internal/jobs"
)

// job is one call of Write.
type job struct {
	jobs.Job
	tx        *tx  // of the last run
	immediate bool // a statement failed whose result was not waited for: the next run waits for all, so that the error appears where it belongs

	received <-chan struct{} // closed when all nodes have received what the job has announced strictly; nil: nothing to wait for
}

// writer owns the connection that writes. It commits the jobs of all callers of this process in groups. The groups of all
// processes follow one another.
type writer struct {
	jobs.Writer[*job]
	e     *Engine
	guard engine.Guard
	conn  *conn // nil or broken until the next group connects

	unreachable bool   // the last attempt to connect failed
	end         result // of the ledger's EndStatement, read with the beginning of the group
	mark        int64  // number of this process's last group that wrote
	marked      bool   // the group has a mark
	commits     int64  // before the group
}

// Write puts a job into the queue and waits for its outcome.
func (e *Engine) Write(ctx context.Context, fn func(engine.Tx) error) error {
	j := &job{}
	if err := e.writer.Write(ctx, j, fn); err != nil {
		return err
	}
	if j.received != nil {
		<-j.received // at most as long as a lease
	}
	return nil
}

// InJob reports whether the calling goroutine runs a job.
func (e *Engine) InJob() bool { return e.writer.InJob() }

// close waits until every accepted job is answered.
func (w *writer) close() {
	w.Close()
	if w.conn != nil {
		w.conn.close()
	}
}

// Run runs a job.
//
// A job that fails after it has written, or through a statement, loses the transaction of the whole group. Its jobs run again,
// each with a savepoint.
func (w *writer) Run(j *job) (intact bool) {
	w.runOnce(j)
	if w.UseSavepoints && w.conn.broken == nil && w.conn.failed.owner == any(j) {
		w.conn.takeFailure()
		j.immediate = true
		if !w.undoJob() {
			return false
		}
		j.Again()
		w.runOnce(j)
	}
	c := w.conn
	switch {
	case c.broken != nil || c.failed.err != nil:
		return false
	case j.Err == nil:
		return true
	case w.UseSavepoints:
		return w.undoJob()
	}
	return c.status == 'T' && !j.tx.wrote
}

// runOnce runs the function of a job.
func (w *writer) runOnce(j *job) {
	c := w.conn
	w.guard.Save()
	if w.UseSavepoints {
		c.ask(savepoint, nil)
	}
	position := c.position()
	j.tx = &tx{Tx: jobs.Tx{Job: &j.Job}, writer: w, job: j, written: make([]string, 0, usualTables)}
	j.Err = j.Call(j.tx)
	j.tx.Ended = true
	c.closeStatements()
	if j.Err != nil {
		w.guard.Restore()
		w.NoteFailure(j.Err)
		if c.withdraw(position) { // nothing that the job wrote was sent
			j.tx.wrote = false
		}
		return
	}
	if w.UseSavepoints && c.broken == nil {
		c.ask(release, j)
		_ = c.exchange() // its failures are in the connection
		if c.failed.err != nil || c.broken != nil {
			w.guard.Restore()
		}
	}
}

// usualTables is the number of tables for whose list a transaction needs one allocation.
const usualTables = 8

const (
	savepoint  = "SAVEPOINT job"
	release    = "RELEASE job"
	rollbackTo = "ROLLBACK TO job"
)

// undoJob undoes the job that ran last, alone. It reports whether the transaction is intact.
func (w *writer) undoJob() bool {
	w.conn.ask(rollbackTo, nil)
	w.conn.ask(release, nil)
	return w.conn.roundTrip() == nil && w.conn.status == 'T'
}

// position is how far the requests of a connection have come.
type position struct {
	out, requests int
	syncs         uint64
}

// position returns the end of the collected requests.
func (c *conn) position() position {
	return position{out: len(c.out), requests: len(c.requests), syncs: c.syncs}
}

// withdraw drops the requests after a position, if none of them was sent.
func (c *conn) withdraw(to position) bool {
	if c.broken != nil || c.failed.err != nil || c.syncs != to.syncs {
		return false
	}
	for _, r := range c.requests[to.requests:] {
		if r.kind == askParse {
			c.forget(r.p)
		}
	}
	c.out, c.requests = c.out[:to.out], c.requests[:to.requests]
	c.unsynced = len(c.requests) > c.head
	return true
}

// tx is the transaction of one run of a job. It implements engine.Tx.
type tx struct {
	jobs.Tx
	writer        *writer
	job           *job
	wrote         bool
	written       []string // tables
	announcements []engine.Announcement
}

// Prepare returns a statement. The context does not interrupt it: that would end the transaction of the whole group.
func (t *tx) Prepare(_ context.Context, sql string) (engine.Statement, error) {
	if err := t.Open(); err != nil {
		return nil, err
	}
	s := t.writer.conn.statement(sql, t)
	if sql == t.writer.guard.EndStatement() {
		s.known = &t.writer.end
	}
	return s, nil
}

// Announce registers an announcement.
func (t *tx) Announce(a engine.Announcement) {
	t.announcements = append(t.announcements, a)
	if a.Delivery != engine.Ordered {
		t.AfterCommit(a.Deliver)
	}
}

// begin runs a statement. One whose result is known if it succeeds is sent later, together with one whose result is not.
func (t *tx) begin(s *statement) (more bool, err error) {
	switch {
	case t.Ended:
		return false, engine.ErrClosed
	case t.Err() != nil:
		return false, t.Err()
	}
	if s.known != nil {
		s.p, s.kept, s.complete = s.known.p, s.known.rows, true
		return s.next()
	}
	known := s.entry.text
	for _, table := range known.written {
		t.wrote = true
		if !slices.Contains(t.written, table) {
			t.written = append(t.written, table)
		}
	}
	if known.inserts == 0 || t.job.immediate {
		return s.start()
	}
	s.changed = known.inserts
	return false, s.postpone(t.job)
}

// failed explains the error of a statement that was skipped because a deferred one before it failed. The job runs again then.
func (t *tx) failed(err error) error { return translate(err) }

func (t *tx) inTransaction() bool { return true }

func (t *tx) closed() {}

const (
	// maxPostponed and maxPostponedBytes bound what is sent without reading answers, which the buffers of the network must hold.
	maxPostponed      = 2000
	maxPostponedBytes = 256 << 10
)

// postpone collects the statement, to be sent together with what follows.
func (s *statement) postpone(owner any) error {
	c := s.conn
	p := s.entry.find(s.args)
	if p == nil {
		p = c.declare(s.entry, s.args, owner)
	}
	s.p, s.complete = p, true
	c.bind(p, "", s.args, s.buffer, owner)
	c.request(request{kind: askExecute, owner: owner}, executeAll)
	if len(c.requests)-c.head < maxPostponed && len(c.out) < maxPostponedBytes {
		return nil
	}
	if err := c.exchange(); err != nil {
		return err
	}
	if c.failed.err != nil {
		return errSkipped
	}
	return nil
}

// result is what a statement has returned.
type result struct {
	p    *prepared
	rows [][][]byte
}

// prepareOwn returns one of the engine's own statements, prepared and without arguments.
func (c *conn) prepareOwn(sql string) (s *statement, err error) {
	s = c.statement(sql, own{conn: c})
	s.Begin()
	if s.p, err = c.prepare(s); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// collect collects a run of the statement, whose rows are kept for it.
func (s *statement) collect() {
	s.started = true
	s.conn.bind(s.p, "", nil, nil, nil)
	s.conn.request(request{kind: askExecute, s: s}, executeAll)
}

// own prepares the engine's own statements on a connection. Those whose result is known if they succeed are sent later.
type own struct {
	conn  *conn
	later bool // send all later
}

func (o own) Prepare(_ context.Context, sql string) (engine.Statement, error) {
	return o.conn.statement(sql, o), nil
}

func (o own) Failed(err error) error { return err }

func (o own) begin(s *statement) (more bool, err error) {
	if o.later || s.entry.text.inserts > 0 && o.conn.status == 'T' {
		return false, s.postpone(nil)
	}
	more, err = s.start()
	if o.conn.failed.err != nil {
		return false, o.conn.takeFailure().err
	}
	return more, err
}

func (o own) failed(err error) error { return translate(err) }
func (o own) inTransaction() bool    { return o.conn.status == 'T' }
func (o own) closed()                {}
