package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	// shareGrace is how long a caller waits for a reader before others are held to their share. A query that belongs to
	// an ordinary request has long ended by then.
	shareGrace = 100 * time.Millisecond
	// lineLength is how many queries of one caller may wait for a reader.
	lineLength = 256
)

// errRevoked ends a query whose caller holds more than its share of the readers while others wait.
var errRevoked = fmt.Errorf("%w: other callers wait and this one has more than half of the readers", ErrBusy)

// CallerKey is the key under which a context names, as a string, the caller that its queries are made for: a user, an API
// key or a client network. While others wait, one caller holds at most half of the readers. Queries without a caller are
// the program's own; they wait in line like a caller, and are never ended.
type CallerKey struct{}

func callerOf(ctx context.Context) string {
	name, _ := ctx.Value(CallerKey{}).(string)
	return name
}

// waiter is one query that waits for a reader.
type waiter struct {
	ctx    context.Context
	caller string
	served chan *reader
}

// line is where queries wait for a reader: those of one caller in their order, the callers by turns.
type line struct {
	callers []string // in the order of their turns
	waiting map[string][]*waiter
	length  int
}

func newLine() line { return line{waiting: make(map[string][]*waiter)} }

func (l *line) join(ctx context.Context) (*waiter, error) {
	w := &waiter{ctx: ctx, caller: callerOf(ctx), served: make(chan *reader, 1)}
	before := l.waiting[w.caller]
	if len(before) >= lineLength {
		return nil, fmt.Errorf("%w: %d queries of the caller wait", ErrBusy, lineLength)
	}
	if len(before) == 0 {
		l.callers = append(l.callers, w.caller)
	}
	l.waiting[w.caller] = append(before, w)
	l.length++
	return w, nil
}

// leave takes a waiter out of the line. It reports false for one that was served.
func (l *line) leave(w *waiter) bool {
	i := slices.Index(l.waiting[w.caller], w)
	if i < 0 {
		return false
	}
	l.waiting[w.caller] = slices.Delete(l.waiting[w.caller], i, i+1)
	l.length--
	if len(l.waiting[w.caller]) == 0 {
		l.forget(slices.Index(l.callers, w.caller))
	}
	return true
}

func (l *line) forget(i int) {
	delete(l.waiting, l.callers[i])
	l.callers = slices.Delete(l.callers, i, i+1)
}

// next takes out who is served next: the first query of the caller whose turn it is. A caller that holds its share
// already is passed over while another waits. The caller's next turn comes after those of all others.
func (l *line) next(share func(caller string) int) *waiter {
	if l.length == 0 {
		return nil
	}
	i := slices.IndexFunc(l.callers, func(caller string) bool { return share(caller) < readers/2 })
	i = max(i, 0)
	caller := l.callers[i]
	w := l.waiting[caller][0]
	l.waiting[caller] = l.waiting[caller][1:]
	l.length--
	more := len(l.waiting[caller]) > 0
	if !more {
		l.forget(i)
		return w
	}
	l.callers = append(slices.Delete(l.callers, i, i+1), caller)
	return w
}

// share is how many readers a caller holds.
func (p *pool) share(caller string) int {
	n := 0
	for _, r := range p.all {
		if r.ctx != nil && callerOf(r.ctx) == caller {
			n++
		}
	}
	return n
}

// enforceShares ends queries of callers that hold more than half of the readers while w waits, the oldest first.
func (p *pool) enforceShares(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	going := map[string][]*reader{}
	for _, r := range p.all {
		if r.ctx != nil && !r.revoked.Load() {
			caller := callerOf(r.ctx)
			going[caller] = append(going[caller], r)
		}
	}
	for caller, held := range going {
		if caller == "" || caller == w.caller || len(held) <= readers/2 {
			continue
		}
		slices.SortFunc(held, func(a, b *reader) int { return cmp.Compare(a.turn, b.turn) })
		for _, r := range held[:len(held)-readers/2] {
			r.revoked.Store(true)
			p.revoked.Add(1)
		}
	}
}
