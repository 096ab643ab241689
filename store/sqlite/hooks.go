package sqlite

import (
	"log/slog"
	"runtime/debug"
	"sync"
)

// hookQueue calls after-commit functions, in the order of the commits, beside the writer. It is unbounded: for each entry a
// caller waits, and callers are bounded.
type hookQueue struct {
	log       *slog.Logger
	progress  *progress
	goroutine goroutine

	mu       sync.Mutex
	notEmpty *sync.Cond // or closed
	jobs     []*job
	closed   bool
	ended    chan struct{}
}

func newHookQueue(log *slog.Logger, progress *progress) *hookQueue {
	q := &hookQueue{log: log, progress: progress, ended: make(chan struct{})}
	q.notEmpty = sync.NewCond(&q.mu)
	go q.loop()
	return q
}

func (q *hookQueue) add(j *job) {
	q.mu.Lock()
	q.jobs = append(q.jobs, j)
	q.mu.Unlock()
	q.notEmpty.Signal()
}

// close waits until all functions have returned.
func (q *hookQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.notEmpty.Signal()
	<-q.ended
}

func (q *hookQueue) loop() {
	defer close(q.ended)
	q.goroutine.setCurrent()
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
			q.progress.begin(&q.progress.hooks)
			for _, f := range j.tx.hooks {
				q.call(f)
			}
			close(j.done)
		}
		q.progress.end(&q.progress.hooks)
	}
}

func (q *hookQueue) call(f func()) {
	defer func() {
		if v := recover(); v != nil {
			q.log.Error("panic after a commit", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	f()
}
