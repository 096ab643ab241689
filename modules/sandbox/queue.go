package sandbox

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// ErrBusy is the error of a Queue whose places are taken.
var ErrBusy = errors.New("all workers are busy")

// Queue bounds how many files are worked on at the same time, and shares the slots among callers: one caller never
// holds all of them while there are two or more, and of those who wait the one that holds the fewest is next. A caller
// without a name, such as a command, is not bound by that.
type Queue struct {
	mutex   sync.Mutex
	free    int
	share   int // slots that one caller may hold
	wait    time.Duration
	holds   map[string]int
	waiting []*ticket
}

// ticket is a file that waits for a slot.
type ticket struct {
	caller string
	turn   chan struct{} // closed when it has its slot
}

const (
	waitingInAll = 16 // each has its file in memory
	waitingEach  = 4
)

// NewQueue makes a Queue. A file waits for a slot no longer than wait.
func NewQueue(slots int, wait time.Duration) *Queue {
	return &Queue{free: slots, share: max(1, slots-1), wait: wait, holds: map[string]int{}}
}

// Enter takes a slot. Call leave exactly once when done. The error is ErrBusy when too many files wait, or for too
// long, or that of the context.
func (q *Queue) Enter(ctx context.Context, caller string) (leave func(), err error) {
	t, err := q.line(caller)
	if err != nil {
		return nil, err
	}
	leave = sync.OnceFunc(func() { q.leave(caller) })
	timer := time.NewTimer(q.wait)
	defer timer.Stop()
	select {
	case <-t.turn:
		return leave, nil
	default:
	}
	select {
	case <-t.turn:
		return leave, nil
	case <-timer.C:
		err = ErrBusy
	case <-ctx.Done():
		err = ctx.Err()
	}
	if q.withdraw(t) {
		return nil, err
	}
	return leave, nil // its turn came at the same moment
}

// line gives a ticket its slot or its place among those who wait.
func (q *Queue) line(caller string) (*ticket, error) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	t := &ticket{caller: caller, turn: make(chan struct{})}
	if q.free > 0 && q.may(caller) {
		q.serve(t)
		return t, nil
	}
	each := 0
	for _, w := range q.waiting {
		if w.caller == caller {
			each++
		}
	}
	if len(q.waiting) >= waitingInAll || caller != "" && each >= waitingEach {
		return nil, ErrBusy
	}
	q.waiting = append(q.waiting, t)
	return t, nil
}

func (q *Queue) may(caller string) bool { return caller == "" || q.holds[caller] < q.share }

// serve gives a slot to a ticket. The caller holds the mutex.
func (q *Queue) serve(t *ticket) {
	q.free--
	q.holds[t.caller]++
	close(t.turn)
}

func (q *Queue) leave(caller string) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.free++
	if q.holds[caller]--; q.holds[caller] == 0 {
		delete(q.holds, caller)
	}
	if next := q.next(); next >= 0 {
		t := q.waiting[next]
		q.waiting = slices.Delete(q.waiting, next, next+1)
		q.serve(t)
	}
}

// next is the index of the ticket whose caller holds the fewest slots, the oldest one of several; -1 without any.
func (q *Queue) next() int {
	best := -1
	for i, t := range q.waiting {
		if q.may(t.caller) && (best < 0 || q.holds[t.caller] < q.holds[q.waiting[best].caller]) {
			best = i
		}
	}
	return best
}

// withdraw takes a ticket out of those who wait. It reports false when the ticket has its slot.
func (q *Queue) withdraw(t *ticket) bool {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	i := slices.Index(q.waiting, t)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i >= 0
}
