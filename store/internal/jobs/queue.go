package jobs

import (
	"fmt"
	"sync"
	"sync/atomic"

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
		select {
		case j = <-q.Waiting:
			return j, true
		default:
			return j, false
		}
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
