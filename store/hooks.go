package store

import (
	"log/slog"
	"runtime/debug"
	"sync"
)

// hookQueue calls what closures left to be done after their commit, in the order of the commits,
// beside the writer. It is unbounded: each entry is a caller who waits, and those are bounded.
type hookQueue struct {
	log       *slog.Logger
	progress  *progress
	goroutine worker

	mu    sync.Mutex
	more  *sync.Cond
	jobs  []*job
	done  bool
	ended chan struct{}
}

func newHookQueue(log *slog.Logger, progress *progress) *hookQueue {
	q := &hookQueue{log: log, progress: progress, ended: make(chan struct{})}
	q.more = sync.NewCond(&q.mu)
	go q.loop()
	return q
}

func (q *hookQueue) add(j *job) {
	q.mu.Lock()
	q.jobs = append(q.jobs, j)
	q.mu.Unlock()
	q.more.Signal()
}

// close waits until all that was added is done.
func (q *hookQueue) close() {
	q.mu.Lock()
	q.done = true
	q.mu.Unlock()
	q.more.Signal()
	<-q.ended
}

func (q *hookQueue) loop() {
	defer close(q.ended)
	q.goroutine.here()
	for {
		q.mu.Lock()
		for len(q.jobs) == 0 && !q.done {
			q.more.Wait()
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
