package bus

import (
	"crypto/rand"
	"slices"
	"time"

	"kontor/store/engine"
)

// Group is the announcements of one transaction.
type Group struct {
	tag      string
	payloads []string
	strict   bool
	locals   []func() // for this node, in the order of the jobs
}

// Prepare returns the announcements of a transaction, or nil when there are none. list has the order of the jobs. Call it
// before the transaction commits. Then [Bus.Committed] or [Bus.Undone] must follow.
func (b *Bus) Prepare(list []engine.Announcement) *Group {
	if len(list) == 0 {
		return nil
	}
	g := &Group{tag: rand.Text()}
	for _, a := range list {
		switch a.Delivery {
		case engine.Strict:
			g.strict = true
		case engine.Ordered:
			g.locals = append(g.locals, a.Deliver)
		}
	}
	g.payloads = encode(b.node, g.tag, g.strict, list)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.session != nil { // otherwise the receivers get an empty key as soon as there is one, or the key when it arrives
		b.kept[g.tag] = g
	}
	return g
}

// Payloads returns the notifications that the transaction must send, see [Notify].
func (g *Group) Payloads() []string { return g.payloads }

// Undone forgets a group whose transaction was not committed. It does nothing with nil.
func (b *Bus) Undone(g *Group) {
	if g == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.kept, g.tag)
}

// waiter is a strict change that has been committed.
type waiter struct {
	tag  string
	at   time.Duration   // monotonic; after the commit
	asks map[string]bool // connections that have not acknowledged; nil: not known yet
	done chan struct{}
	stop func() bool
}

// Committed returns a channel that is closed when all nodes have acknowledged the strict announcements of a group, or may not
// use what they remember: after 2 s at most. It returns nil when there is nothing to wait for. Call it in the order of the
// commits, as soon as the commit is certain. It does not wait.
func (b *Bus) Committed(g *Group) <-chan struct{} {
	if g == nil || !g.strict {
		return nil
	}
	w := &waiter{tag: g.tag, at: b.time.Now(), done: make(chan struct{})}
	b.mu.Lock()
	b.waiters = append(b.waiters, w)
	s := b.session
	w.stop = b.time.AfterFunc(lease, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.finish(w)
	})
	b.mu.Unlock()
	if s != nil {
		s.pollNow()
	}
	return w.done
}

// finish ends the wait of a strict change. b.mu is held.
func (b *Bus) finish(w *waiter) {
	i := slices.Index(b.waiters, w)
	if i < 0 {
		return
	}
	b.waiters = slices.Delete(b.waiters, i, i+1)
	w.stop()
	close(w.done)
}

// acknowledged evaluates the acknowledgements that a poll has found, and reports whether changes still wait.
func (b *Bus) acknowledged(s *session, sent time.Duration, rows []row) (waiting bool) {
	now := b.time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.session != s {
		return false
	}
	if !b.members.trusted(now) || !slices.ContainsFunc(rows, func(r row) bool { return r[0] == s.id }) {
		return len(b.waiters) > 0 // the tables were emptied
	}
	position := make(map[string]int, len(b.waiters)) // of a change, from 1
	for i, w := range b.waiters {
		position[w.tag] = i + 1
	}
	acknowledged := make(map[string]int, len(rows)) // how many changes a connection has acknowledged
	for _, r := range rows {
		acknowledged[r[0]] = position[r[2]]
	}
	for i, w := range slices.Clone(b.waiters) {
		if sent < w.at {
			break // nodes may have registered between the poll and the commit
		}
		if w.asks == nil {
			w.asks = b.nodesToAsk(s, rows, now)
		}
		for id := range w.asks {
			if n, registered := acknowledged[id]; !registered || n > i {
				delete(w.asks, id)
			}
		}
		if len(w.asks) == 0 {
			b.finish(w)
		}
	}
	return len(b.waiters) > 0
}

// nodesToAsk returns the connections whose lease may not have ended.
func (b *Bus) nodesToAsk(s *session, rows []row, now time.Duration) map[string]bool {
	ask := make(map[string]bool)
	for _, r := range rows {
		id, beats := r[0], r[1]
		before, known := b.members.nodes[id]
		if id != s.id && !(known && before.beats == beats && before.silent(now)) {
			ask[id] = true
		}
	}
	return ask
}

// releaseSilent has no change wait for nodes whose lease has ended, as a heartbeat sent at a time has shown. A node can have
// begun a new lease between that heartbeat and a later commit. b.mu is held.
func (b *Bus) releaseSilent(sent, now time.Duration) {
	for _, w := range slices.Clone(b.waiters) {
		if w.asks == nil || sent < w.at {
			continue
		}
		for id := range w.asks {
			if n, known := b.members.nodes[id]; known && n.silent(now) {
				delete(w.asks, id)
			}
		}
		if len(w.asks) == 0 {
			b.finish(w)
		}
	}
}
