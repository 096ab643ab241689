package sqlite

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

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

	position  position // of the newest commit
	changed   int64    // rows that the connection had changed when the group began
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

// loop serves the queue until close. When its goroutine ends early (a panic here, or runtime.Goexit in a job), it answers
// all jobs of the open group, and another goroutine continues.
func (w *writer) loop() {
	finished := false
	w.goroutine.SetCurrent()
	defer func() {
		w.progress.End(&w.progress.Writer)
		if finished {
			close(w.ended)
			return
		}
		cause := recover()
		if cause == nil {
			cause = "its goroutine was ended"
		}
		w.log.Error("the goroutine of the writer ended; another one continues", "cause", cause, "stack", string(debug.Stack()))
		w.abandonGroup(fmt.Errorf("transaction was not finished: %v", cause))
		go w.loop()
	}()
	for {
		if len(w.retries) > 0 {
			w.commitGroup(nil)
			continue
		}
		j, ok := w.queue.Next()
		if !ok {
			finished = true
			return
		}
		w.commitGroup(j)
	}
}

// close waits until every accepted job is answered.
func (w *writer) close() {
	w.queue.Close()
	<-w.ended
}
