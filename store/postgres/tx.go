package postgres

import (
	"context"
	"fmt"
	"slices"

	"kontor/store/engine"
)

// tx is the transaction of one run of a job. It implements engine.Tx.
type tx struct {
	writer        *writer
	job           *job
	immediate     bool  // no statement is deferred
	err           error // of the first statement that failed
	ended         bool
	wrote         bool
	written       []string // tables
	announcements []engine.Announcement

	// The first elements of the list, so that most transactions need no further allocation.
	writtenSpace [8]string
}

// begin prepares a new transaction.
func (t *tx) start(w *writer, j *job) {
	t.writer, t.job, t.immediate = w, j, j.immediate
	t.written = t.writtenSpace[:0]
}

// Prepare returns a statement. The context does not interrupt it: that would end the transaction of the whole group.
func (t *tx) Prepare(_ context.Context, sql string) (engine.Statement, error) {
	if t.ended {
		return nil, fmt.Errorf("transaction: %w", engine.ErrClosed)
	}
	if t.err != nil {
		return nil, fmt.Errorf("transaction failed before: %w", t.err)
	}
	s := t.writer.conn.statement(sql, t)
	if sql == t.writer.guard.EndStatement() {
		s.known = &t.writer.end
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
	case t.ended:
		return false, engine.ErrClosed
	case t.err != nil:
		return false, t.err
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
	if known.inserts == 0 || t.immediate {
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
