package jobs

import (
	"log/slog"
	"runtime/debug"
	"sync"
)

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
			for _, f := range j.Hooks {
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
