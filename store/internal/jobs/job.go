// Package jobs is what the writers of the engines share: the queue of jobs, the life of a job, its after-commit functions, the
// recognition of nested calls, and the measurement of progress.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"kontor/store/engine"
)

// outcomeWait is how long a caller whose context has ended waits for the outcome of a job that has run. The outcome is known
// within milliseconds, unless the disk or the network hangs.
const outcomeWait = 5 * time.Second

// maxRuns is how often a job runs whose transaction is lost through other jobs.
const maxRuns = 3

// ErrPanic is the error of a job that has panicked.
var ErrPanic = errors.New("panic in a transaction")

// The states of a job.
const (
	waiting   int32 = iota
	taken           // by the writer, which runs the job or is about to run it again
	ran             // the job has returned; its commit or sync is in progress
	abandoned       // by the caller, which may have left before or after the job ran
)

// A Job is one call of Write.
type Job struct {
	ctx   context.Context // of the caller: a job whose caller has left while it waited must not run
	fn    func(engine.Tx) error
	state atomic.Int32
	panic *panicked

	Runs  int
	Err   error    // of the last run, then of the job
	hooks []func() // the after-commit functions of the last run

	answered bool // or handed to the hooks, which then close done
	done     chan struct{}
}

// job returns the job itself, for types that embed it.
func (j *Job) job() *Job { return j }

// init prepares a job for the queue.
func (j *Job) init(ctx context.Context, fn func(engine.Tx) error) {
	j.ctx, j.fn, j.done = ctx, fn, make(chan struct{})
}

// panicked is a panic of a job, on its way to the goroutine of the caller.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) String() string {
	return fmt.Sprintf("%v\n\nin a transaction:\n%s", p.value, p.stack)
}

// wait returns the outcome of a job that is in the queue, as engine.Engine.Write does.
func (j *Job) wait() error {
	select {
	case <-j.done:
	case <-j.ctx.Done():
		if j.state.CompareAndSwap(waiting, abandoned) {
			return j.ctx.Err()
		}
		if !j.awaitOutcome() {
			return fmt.Errorf("%w: %w", engine.ErrOutcomeUnknown, j.ctx.Err())
		}
	}
	if j.panic != nil {
		panic(j.panic.String())
	}
	return j.Err
}

// awaitOutcome waits for the outcome of a job that the writer has taken, and reports whether it came in time. It waits
// without limit while the job runs, because the job may still use what belongs to its caller.
func (j *Job) awaitOutcome() bool {
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

// begin takes a job for its next run. The run ends with ended. When it returns false, the job must not run: the error, if there is one,
// is the answer to its caller, who has left otherwise.
func (j *Job) begin() (ok bool, err error) {
	before := ran
	if j.Runs == 0 {
		before = waiting
	}
	if !j.state.CompareAndSwap(before, taken) {
		if j.Runs > 0 { // undone, and its caller has left
			return false, engine.ErrOutcomeUnknown
		}
		return false, nil
	}
	if err := j.ctx.Err(); j.Runs == 0 && err != nil {
		j.state.Store(ran)
		return false, err
	}
	j.Runs++
	j.Again()
	return true, nil
}

// Again prepares a job for another run at once, after its last one was undone.
func (j *Job) Again() {
	j.Err, j.panic, j.hooks = nil, nil, nil
}

// ended records that a run has ended: its caller may leave from now on.
func (j *Job) ended() { j.state.Store(ran) }

// reject takes a job that did not run. It returns false when the caller has left.
func (j *Job) reject() bool { return j.Runs > 0 || j.state.CompareAndSwap(waiting, taken) }

// Call calls the function of the job and recovers its panic.
func (j *Job) Call(tx engine.Tx) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			j.panic = &panicked{value: v, stack: debug.Stack()}
			err = ErrPanic
		}
	}()
	if err = j.fn(tx); err == nil {
		err = tx.Err() // the job continued after a failed statement
	}
	returned = true
	return err
}

// answer lets the caller of a job continue, after the job's after-commit functions. Further answers are ignored.
func (j *Job) answer(err error, hooks *Hooks) {
	if j.answered {
		return
	}
	j.answered = true
	j.Err = err
	if err != nil || len(j.hooks) == 0 {
		close(j.done)
		return
	}
	hooks.add(j)
}

// Hooks calls after-commit functions, in the order of the commits, beside the writer. It is unbounded: for each entry a
// caller waits, and callers are bounded.
type Hooks struct {
	log       *slog.Logger
	progress  *Progress
	goroutine Goroutine

	mu       sync.Mutex
	notEmpty *sync.Cond // or closed
	jobs     []*Job
	closed   bool
	ended    chan struct{}
}

// NewHooks starts the goroutine that calls the functions. It ends with Close.
func NewHooks(log *slog.Logger, progress *Progress) *Hooks {
	q := &Hooks{log: log, progress: progress, ended: make(chan struct{})}
	q.notEmpty = sync.NewCond(&q.mu)
	go q.loop()
	return q
}

func (q *Hooks) add(j *Job) {
	q.mu.Lock()
	q.jobs = append(q.jobs, j)
	q.mu.Unlock()
	q.notEmpty.Signal()
}

// Close waits until all functions have returned.
func (q *Hooks) Close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.notEmpty.Signal()
	<-q.ended
}

func (q *Hooks) loop() {
	defer close(q.ended)
	q.goroutine.SetCurrent()
	for {
		q.mu.Lock()
		for len(q.jobs) == 0 && !q.closed {
			q.notEmpty.Wait()
		}
		jobs := q.jobs
		q.jobs = nil
		q.mu.Unlock()
		if len(jobs) == 0 {
			return
		}
		for _, j := range jobs {
			q.progress.Begin(&q.progress.Hooks)
			for _, f := range j.hooks {
				q.call(f)
			}
			close(j.done)
		}
		q.progress.End(&q.progress.Hooks)
	}
}

func (q *Hooks) call(f func()) {
	defer func() {
		if v := recover(); v != nil {
			q.log.Error("panic after a commit", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	f()
}
