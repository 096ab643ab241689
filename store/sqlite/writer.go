package sqlite

import (
	"context"
	"log/slog"

	"kontor/store/clock"
	"kontor/store/engine"
	"kontor/store/internal/jobs"
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
