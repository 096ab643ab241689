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
	largest int // bytes of the largest file
}

// ticket is a file that waits for a slot.
type ticket struct {
	caller  string
	bytes   int           // in memory while it waits
	granted chan struct{} // closed when the file gets its slot
}

const (
	// maxWaiting is how many files of the largest size may wait: each is in memory. Of smaller ones, more may wait, as long as they
	// have the same size together.
	maxWaiting = 16
	// maxWaitingSmall bounds their number.
	maxWaitingSmall = 512
	// One caller may use a quarter of the bytes and half of the number.
	bytesShare = 4
	filesShare = 2
)

// NewQueue returns a Queue of files whose sizes do not matter. A file waits for a slot no longer than wait.
func NewQueue(slots int, wait time.Duration) *Queue { return NewSizedQueue(slots, wait, 1) }

// NewSizedQueue returns a Queue of files of at most largest bytes.
func NewSizedQueue(slots int, wait time.Duration, largest int) *Queue {
	return &Queue{free: slots, share: max(1, slots-1), wait: wait, holds: map[string]int{}, largest: largest}
}

// Acquire is like AcquireFor for a file of the largest size.
func (q *Queue) Acquire(ctx context.Context, caller string) (release func(), err error) {
	return q.AcquireFor(ctx, caller, q.largest)
}

// AcquireFor acquires a slot for a file that has a number of bytes in memory. Call release when done. AcquireFor returns ErrBusy when
// too many files wait or when this one has waited too long, and the error of the context when that ends.
func (q *Queue) AcquireFor(ctx context.Context, caller string, bytes int) (release func(), err error) {
	t, err := q.enqueue(caller, min(bytes, q.largest))
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
func (q *Queue) enqueue(caller string, bytes int) (*ticket, error) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	t := &ticket{caller: caller, bytes: bytes, granted: make(chan struct{})}
	if q.free > 0 && q.belowShare(caller) {
		q.grant(t)
		return t, nil
	}
	all, own := line{1, bytes}, line{1, bytes}
	for _, w := range q.waiting {
		all.add(w)
		if w.caller == caller {
			own.add(w)
		}
	}
	if !all.fits(q.largest, 1, 1) || caller != "" && !own.fits(q.largest, filesShare, bytesShare) {
		return nil, ErrBusy
	}
	q.waiting = append(q.waiting, t)
	return t, nil
}

// line is a number of files that wait, and their size.
type line struct{ files, bytes int }

func (l *line) add(t *ticket) {
	l.files++
	l.bytes += t.bytes
}

// fits reports whether so many files may wait in these parts of the queue.
func (l line) fits(largest, files, bytes int) bool {
	return l.files <= maxWaitingSmall/files && l.bytes <= maxWaiting*largest/bytes
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
