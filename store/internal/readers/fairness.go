package readers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"kontor/store/engine"
)

const (
	// shareGrace is how long a query waits for a reader before other callers are limited to their share. A query of an
	// ordinary request has long ended by then.
	shareGrace = 100 * time.Millisecond
	// MaxWaitingPerCaller is how many queries of one caller may wait for a reader.
	MaxWaitingPerCaller = 256
)

// errRevoked ends a query whose caller holds more than its share of the readers while others wait.
var errRevoked = fmt.Errorf("%w: other callers wait and this one has more than half of the readers", engine.ErrBusy)

// waiter is one query that waits for a reader.
type waiter[R Reader] struct {
	ctx    context.Context // of the caller: the reader that serves it is bound to it, on another goroutine
	caller string
	served chan R
}

// waitQueue holds the queries that wait for a reader. Callers take turns; the queries of one caller keep their order.
type waitQueue[R Reader] struct {
	callers []string // in the order of their turns
	waiting map[string][]*waiter[R]
	length  int
}

func newWaitQueue[R Reader]() waitQueue[R] {
	return waitQueue[R]{waiting: make(map[string][]*waiter[R])}
}

// add appends a query. It returns ErrBusy when too many queries of its caller wait.
func (q *waitQueue[R]) add(ctx context.Context) (*waiter[R], error) {
	w := &waiter[R]{ctx: ctx, caller: engine.Caller(ctx), served: make(chan R, 1)}
	before := q.waiting[w.caller]
	if len(before) >= MaxWaitingPerCaller {
		return nil, fmt.Errorf("%w: %d queries of the caller wait", engine.ErrBusy, MaxWaitingPerCaller)
	}
	if len(before) == 0 {
		q.callers = append(q.callers, w.caller)
	}
	q.waiting[w.caller] = append(before, w)
	q.length++
	return w, nil
}

// remove removes a query. It returns false when the query was served before.
func (q *waitQueue[R]) remove(w *waiter[R]) bool {
	i := slices.Index(q.waiting[w.caller], w)
	if i < 0 {
		return false
	}
	q.waiting[w.caller] = slices.Delete(q.waiting[w.caller], i, i+1)
	q.length--
	if len(q.waiting[w.caller]) == 0 {
		q.removeCaller(slices.Index(q.callers, w.caller))
	}
	return true
}

func (q *waitQueue[R]) removeCaller(i int) {
	delete(q.waiting, q.callers[i])
	q.callers = slices.Delete(q.callers, i, i+1)
}

// next removes and returns the query to serve: the first of the caller whose turn it is, or nil when none waits. A caller
// that holds its share is skipped while another waits. The next turn of the served caller comes after all others.
func (q *waitQueue[R]) next(held func(caller string) int, share int) *waiter[R] {
	if q.length == 0 {
		return nil
	}
	i := slices.IndexFunc(q.callers, func(caller string) bool { return held(caller) < share })
	i = max(i, 0)
	caller := q.callers[i]
	w := q.waiting[caller][0]
	q.waiting[caller] = q.waiting[caller][1:]
	q.length--
	if len(q.waiting[caller]) == 0 {
		q.removeCaller(i)
		return w
	}
	q.callers = append(slices.Delete(q.callers, i, i+1), caller)
	return w
}

// held returns how many readers a caller holds.
func (p *Pool[R]) held(caller string) int {
	n := 0
	for _, r := range p.all {
		if ctx := r.Pooled().ctx; ctx != nil && engine.Caller(ctx) == caller {
			n++
		}
	}
	return n
}

// EnforceShares ends queries of callers that hold more than half of the readers while a query of the given caller waits, the
// oldest first. Queries without a caller, and those of the waiting caller, are not ended. A query that has waited for a while calls it.
func (p *Pool[R]) EnforceShares(waiting string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	running := map[string][]R{}
	for _, r := range p.all {
		if s := r.Pooled(); s.ctx != nil && !s.revoked.Load() {
			caller := engine.Caller(s.ctx)
			running[caller] = append(running[caller], r)
		}
	}
	share := len(p.all) / 2
	for caller, held := range running {
		if caller == "" || caller == waiting || len(held) <= share {
			continue
		}
		slices.SortFunc(held, func(a, b R) int { return cmp.Compare(a.Pooled().turn, b.Pooled().turn) })
		for _, r := range held[:len(held)-share] {
			r.Pooled().revoked.Store(true)
			r.Revoked()
			p.revoked.Add(1)
		}
	}
}
