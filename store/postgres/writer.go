package postgres

import (
	"context"
	"log/slog"

	"kontor/store/engine"
	"kontor/store/internal/jobs"
)

// job is one call of Write.
type job struct {
	jobs.Job
	tx        *tx  // of the last run
	immediate bool // a statement failed whose result was not waited for: the next run waits for all, so that the error appears where it belongs

	received <-chan struct{} // closed when all nodes have received what the job has announced strictly; nil: nothing to wait for

	firstTx tx // of the first run, so that most jobs need no further allocation
}

// writer owns the connection that writes. One goroutine runs the jobs of all callers of this process, one after another, and
// commits them in groups. The groups of all processes follow one another.
type writer struct {
	e        *Engine
	log      *slog.Logger
	guard    engine.Guard
	conn     *conn // nil or broken until the next group connects
	queue    *jobs.Queue[*job]
	hooks    *jobs.Hooks
	progress jobs.Progress
	ended    chan struct{} // closed when the last job is answered

	goroutine jobs.Goroutine
	counters  counters

	group       []*job // of the open transaction
	retries     []*job // jobs whose transaction was lost; the next group begins with them
	unreachable bool   // the last attempt to connect failed
	careful     bool   // each job of the group has a savepoint
	end         result // of the ledger's EndStatement, read with the beginning of the group
	mark        int64  // number of this process's last group that wrote
	marked      bool   // the group has a mark
	commits     int64  // before the group
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
	if err := j.Wait(); err != nil {
		return err
	}
	if j.received != nil {
		<-j.received // at most as long as a lease
	}
	return nil
}

// InJob reports whether the calling goroutine runs a job.
func (e *Engine) InJob() bool { return e.writer.goroutine.IsCurrent() }

// rejectRead returns ErrNested within a job.
func (w *writer) rejectRead() error { return jobs.RejectRead(&w.goroutine) }

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
	if w.conn != nil {
		w.conn.close()
	}
}

// run runs a job. It reports whether the transaction is intact: it holds the writes of the jobs before, and none of a failed
// job.
//
// A job that fails after it has written, or through a statement, loses the transaction of the whole group. Its jobs run again,
// each with a savepoint.
func (w *writer) run(j *job) (intact bool) {
	if ok, err := j.Begin(); !ok {
		if err != nil {
			j.Answer(err, w.hooks)
		}
		return true
	}
	defer j.Ended()
	w.group = append(w.group, j)
	w.progress.Begin(&w.progress.Writer)
	w.runOnce(j)
	if w.careful && w.conn.broken == nil && w.conn.failed.owner == any(j) {
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
	case w.careful:
		return w.undoJob()
	}
	return c.status == 'T' && !j.tx.wrote
}

// runOnce runs the function of a job.
func (w *writer) runOnce(j *job) {
	c := w.conn
	w.guard.Save()
	if w.careful {
		c.ask(savepoint, nil)
	}
	position := c.position()
	j.tx = &j.firstTx
	if j.tx.writer != nil { // an earlier Tx that the function has kept must stay closed
		j.tx = &tx{}
	}
	j.tx.start(w, j)
	j.Err = j.Call(j.tx)
	j.tx.ended = true
	c.closeStatements()
	if j.Err != nil {
		w.guard.Restore()
		w.noteFailure(j.Err)
		if c.withdraw(position) { // nothing that the job wrote was sent
			j.tx.wrote = false
		}
		return
	}
	if w.careful && c.broken == nil {
		c.ask(release, j)
		_ = c.exchange() // its failures are in the connection
		if c.failed.err != nil || c.broken != nil {
			w.guard.Restore()
		}
	}
}

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
