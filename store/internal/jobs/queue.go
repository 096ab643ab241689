package jobs

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/petermattis/goid"

	"kontor/store/engine"
)

// QueueLength is how many jobs may wait. At the measured rate that is a tenth of a second of work; excess callers are
// rejected with ErrBusy.
const QueueLength = 1024

// A Queue holds the jobs that wait for the writer.
type Queue[J any] struct {
	Waiting chan J
	Stop    chan struct{} // closed by Close; from then on the queue does not grow

	accepting sync.RWMutex // held for reading while a job is put into the queue
	closed    bool
	refused   atomic.Uint64
}

// NewQueue returns an empty queue.
func NewQueue[J any]() *Queue[J] {
	return &Queue[J]{Waiting: make(chan J, QueueLength), Stop: make(chan struct{})}
}

// Add appends a job. It returns ErrBusy when too many wait, and ErrClosed after Close.
func (q *Queue[J]) Add(j J) error {
	q.accepting.RLock()
	defer q.accepting.RUnlock()
	if q.closed {
		return engine.ErrClosed
	}
	select {
	case q.Waiting <- j:
		return nil
	default:
		q.refused.Add(1)
		return fmt.Errorf("%w: %d writes wait", engine.ErrBusy, QueueLength)
	}
}

// Refused returns how many jobs were rejected because too many waited.
func (q *Queue[J]) Refused() uint64 { return q.refused.Load() }

// Next waits for a job. It returns false when the queue was closed and is empty.
func (q *Queue[J]) Next() (j J, ok bool) {
	select {
	case j = <-q.Waiting:
		return j, true
	case <-q.Stop:
		return q.Poll()
	}
}

// Poll returns a job, or false if none waits.
func (q *Queue[J]) Poll() (j J, ok bool) {
	select {
	case j = <-q.Waiting:
		return j, true
	default:
		return j, false
	}
}

// Closed reports whether the queue rejects further jobs.
func (q *Queue[J]) Closed() bool {
	select {
	case <-q.Stop:
		return true
	default:
		return false
	}
}

// Close makes the queue reject further jobs. A second Close does nothing.
func (q *Queue[J]) Close() {
	q.accepting.Lock()
	already := q.closed
	q.closed = true
	q.accepting.Unlock()
	if !already {
		close(q.Stop)
	}
}

// loop calls step until it reports that no more work comes. It records the goroutine that does so. When that goroutine ends early
// (a panic in step, or runtime.Goexit in a job), abandon answers what was begun, and another goroutine continues.
func (g *Goroutine) loop(step func() (more bool), abandon func(error), log *slog.Logger) {
	finished := false
	g.SetCurrent()
	defer func() {
		if finished {
			return
		}
		cause := recover()
		if cause == nil {
			cause = "its goroutine was ended"
		}
		log.Error("the goroutine of the writer ended; another one continues", "cause", cause, "stack", string(debug.Stack()))
		abandon(fmt.Errorf("transaction was not finished: %v", cause))
		go g.loop(step, abandon, log)
	}()
	for step() {
	}
	finished = true
}

// StallAfter is how long one piece of work may take before the database counts as stalled. The longest of a healthy
// database, a checkpoint that the writer waits for, takes less than a second on a slow disk.
const StallAfter = 5 * time.Second

// Progress measures how long the goroutines behind Write have worked on their present piece of work. It uses the monotonic
// clock, so that a change of the system's clock neither hides nor fakes a stall.
type Progress struct {
	Start  time.Time
	Writer Busy // with a job, a commit, a checkpoint, or waiting for the syncer
	Syncer Busy // with a sync
	Hooks  Busy // with the after-commit functions of one job
}

// Busy is the start of the current work, in nanoseconds after the start of the process; 0 if idle.
type Busy struct{ since atomic.Int64 }

// Begin records that a piece of work begins.
func (p *Progress) Begin(b *Busy) { b.since.Store(max(1, int64(time.Since(p.Start)))) }

// End records that there is no work.
func (p *Progress) End(b *Busy) { b.since.Store(0) }

// age returns how long the present piece of work has taken.
func (p *Progress) age(b *Busy) time.Duration {
	since := b.since.Load()
	if since == 0 {
		return 0
	}
	return time.Since(p.Start) - time.Duration(since)
}

// Oldest returns the age and the kind of the slowest piece of work. A sync that hangs is named before the writer, because it
// blocks the writer too.
func (p *Progress) Oldest() (age time.Duration, what string) {
	if age = p.age(&p.Syncer); age > StallAfter {
		return age, "a sync of the log to disk"
	}
	for _, w := range []struct {
		*Busy
		what string
	}{{&p.Hooks, "a function after a commit"}, {&p.Writer, "a transaction"}} {
		if a := p.age(w.Busy); a > age {
			age, what = a, w.what
		}
	}
	return age, what
}

// Stalled returns ErrStalled when a piece of work takes too long.
func (p *Progress) Stalled() error {
	age, what := p.Oldest()
	if age <= StallAfter {
		return nil
	}
	return fmt.Errorf("%w: %s has taken %s so far", engine.ErrStalled, what, age.Round(time.Second))
}

// Goroutine identifies the goroutine that runs functions of callers: jobs, or after-commit functions. Such a function that
// called Write would wait for its own goroutine, whatever context it passed. So the goroutine is compared, not the context.
//
// A goroutine that a job starts and waits for is not recognised. It stalls the writer, which Ready reports.
type Goroutine struct{ id atomic.Int64 }

// SetCurrent records the current goroutine.
func (g *Goroutine) SetCurrent() { g.id.Store(goid.Get()) }

// IsCurrent reports whether the current goroutine is the recorded one. No goroutine has the id 0.
func (g *Goroutine) IsCurrent() bool { return g.id.Load() == goid.Get() }
