package sqlite

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"kontor/store/clock"
	"kontor/store/engine"
	"kontor/store/sqlite/internal/binding"
)

// queueLength is how many jobs may wait. At the measured rate that is a tenth of a second of work; excess callers are
// rejected with ErrBusy.
const queueLength = 1024

// outcomeWait is how long a caller whose context has ended waits for the outcome of a job that has run. The outcome is known
// within milliseconds, unless the disk hangs.
const outcomeWait = 5 * time.Second

// The states of a job.
const (
	waiting   int32 = iota
	taken           // by the writer, which runs the job or is about to run it again
	ran             // the job has returned; its commit or sync is in progress
	abandoned       // by the caller, which may have left before or after the job ran
)

// job is one call of Write.
type job struct {
	ctx   context.Context // of the caller: a job whose caller has left while it waited must not run
	fn    func(engine.Tx) error
	state atomic.Int32
	runs  int
	tx    *tx // of the last run
	err   error
	panic *panicked

	firstTx tx // of the first run, so that most jobs need no further allocation

	answered bool // or handed to the hooks, which then close done
	done     chan struct{}
}

// panicked is a panic of a job, on its way to the goroutine of the caller.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) String() string {
	return fmt.Sprintf("%v\n\nin a transaction:\n%s", p.value, p.stack)
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
	queue    chan *job
	stop     chan struct{} // closed by close: no more jobs are accepted
	ended    chan struct{} // closed when the last job is answered
	hooks    *hookQueue

	position  position // of the newest commit
	changed   int64    // rows that the connection had changed when the group began
	goroutine goroutine
	progress  progress

	accepting sync.RWMutex // held for reading while a job is put into the queue
	closed    bool

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
	if err := e.writer.rejectNestedWrite(); err != nil {
		return err
	}
	j := &job{ctx: ctx, fn: fn, done: make(chan struct{})}
	if err := e.writer.enqueue(j); err != nil {
		return err
	}
	select {
	case <-j.done:
	case <-ctx.Done():
		if j.state.CompareAndSwap(waiting, abandoned) {
			return ctx.Err()
		}
		if !j.awaitOutcome() {
			return fmt.Errorf("%w: %w", engine.ErrOutcomeUnknown, ctx.Err())
		}
	}
	if j.panic != nil {
		panic(j.panic.String())
	}
	return j.err
}

// InJob reports whether the calling goroutine runs a job.
func (e *Engine) InJob() bool { return e.writer.goroutine.isCurrent() }

// awaitOutcome waits for the outcome of a job that the writer has taken, and reports whether it came in time. It waits
// without limit while the job runs, because the job may still use what belongs to its caller.
func (j *job) awaitOutcome() bool {
	timer := time.NewTimer(outcomeWait)
	defer timer.Stop()
	for {
		select {
		case <-j.done:
			return true
		case <-timer.C:
			if j.state.CompareAndSwap(ran, abandoned) {
				return false
			}
			timer.Reset(outcomeWait)
		}
	}
}

func (w *writer) enqueue(j *job) error {
	w.accepting.RLock()
	defer w.accepting.RUnlock()
	if w.closed {
		return engine.ErrClosed
	}
	select {
	case w.queue <- j:
		return nil
	default:
		w.counters.refused.Add(1)
		return fmt.Errorf("%w: %d writes wait", engine.ErrBusy, queueLength)
	}
}

// loop serves the queue until close. When its goroutine ends early (a panic here, or runtime.Goexit in a job), it answers
// all jobs of the open group, and another goroutine continues.
func (w *writer) loop() {
	finished := false
	w.goroutine.setCurrent()
	defer func() {
		w.progress.end(&w.progress.writer)
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
		select {
		case j := <-w.queue:
			w.commitGroup(j)
		case <-w.stop:
			// The queue does not grow any more.
			select {
			case j := <-w.queue:
				w.commitGroup(j)
			default:
				finished = true
				return
			}
		}
	}
}

// close waits until every accepted job is answered.
func (w *writer) close() {
	w.accepting.Lock()
	already := w.closed
	w.closed = true
	w.accepting.Unlock()
	if !already {
		close(w.stop)
	}
	<-w.ended
}
