package sandbox

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// ErrBusy is returned by a Queue without a free slot.
var ErrBusy = errors.New("all workers are busy")

// Queue limits how many files are processed concurrently, and shares the slots fairly. One caller never holds all of two
// or more slots, and the waiting caller with the fewest slots is served next. A caller without a name, such as a command,
// is exempt from both rules.
type Queue struct {
	mutex   sync.Mutex
	free    int
	share   int // maximum number of slots per caller
	wait    time.Duration
	holds   map[string]int // slots by caller
	waiting []*ticket
}

// ticket is a file that waits for a slot.
type ticket struct {
	caller  string
	granted chan struct{} // closed when the file gets its slot
}

const (
	maxWaiting          = 16 // each waiting file is in memory
	maxWaitingPerCaller = 4
)

// NewQueue returns a Queue. A file waits for a slot no longer than wait.
func NewQueue(slots int, wait time.Duration) *Queue {
	return &Queue{free: slots, share: max(1, slots-1), wait: wait, holds: map[string]int{}}
}

// Acquire acquires a slot. Call release when done. Acquire returns ErrBusy when too many files wait or when this one has
// waited too long, and the error of the context when that ends.
func (q *Queue) Acquire(ctx context.Context, caller string) (release func(), err error) {
	t, err := q.enqueue(caller)
	if err != nil {
		return nil, err
	}
	release = sync.OnceFunc(func() { q.release(caller) })
	timer := time.NewTimer(q.wait)
	defer timer.Stop()
	select {
	case <-t.granted:
		return release, nil
	default:
	}
	select {
	case <-t.granted:
		return release, nil
	case <-timer.C:
		err = ErrBusy
	case <-ctx.Done():
		err = ctx.Err()
	}
	if q.withdraw(t) {
		return nil, err
	}
	return release, nil // the slot was granted at the same moment
}

// enqueue returns a ticket that has a slot, or one that waits for it.
func (q *Queue) enqueue(caller string) (*ticket, error) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	t := &ticket{caller: caller, granted: make(chan struct{})}
	if q.free > 0 && q.belowShare(caller) {
		q.grant(t)
		return t, nil
	}
	ofCaller := 0
	for _, w := range q.waiting {
		if w.caller == caller {
			ofCaller++
		}
	}
	if len(q.waiting) >= maxWaiting || caller != "" && ofCaller >= maxWaitingPerCaller {
		return nil, ErrBusy
	}
	q.waiting = append(q.waiting, t)
	return t, nil
}

func (q *Queue) belowShare(caller string) bool { return caller == "" || q.holds[caller] < q.share }

// grant assigns a slot to a ticket. The caller holds the mutex.
func (q *Queue) grant(t *ticket) {
	q.free--
	q.holds[t.caller]++
	close(t.granted)
}

func (q *Queue) release(caller string) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.free++
	if q.holds[caller]--; q.holds[caller] == 0 {
		delete(q.holds, caller)
	}
	if next := q.next(); next >= 0 {
		t := q.waiting[next]
		q.waiting = slices.Delete(q.waiting, next, next+1)
		q.grant(t)
	}
}

// next returns the index of the oldest ticket whose caller holds the fewest slots, or -1.
func (q *Queue) next() int {
	best := -1
	for i, t := range q.waiting {
		if q.belowShare(t.caller) && (best < 0 || q.holds[t.caller] < q.holds[q.waiting[best].caller]) {
			best = i
		}
	}
	return best
}

// withdraw removes a waiting ticket. It reports false when the ticket has a slot.
func (q *Queue) withdraw(t *ticket) bool {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	i := slices.Index(q.waiting, t)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i >= 0
}
