// Package readers is the bounded pool of readers that the engines share. While none is free, callers wait in a queue and take
// turns; one caller does not keep more than half of the readers while others wait.
package readers

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"kontor/store/engine"
)

// maxWait bounds the wait for a reader, so that code which queries while it still holds rows fails instead of waiting
// forever.
const maxWait = 10 * time.Second

// A Reader is a connection of the pool, used by one holder at a time. Its implementation embeds a Slot.
type Reader interface {
	// Pooled returns the pool's part of the reader.
	Pooled() *Slot
	// Prepare makes the reader ready for a new holder: it connects a reader whose connection was closed. The holder's
	// context is in the slot.
	Prepare() error
	// Revoked is called, with the pool locked, when the holder has more than its share. Statements must then end soon, with
	// the error of the slot.
	Revoked()
	// Close closes the connection, if there is one.
	Close()
}

// A Slot is the pool's record of a reader: its present holder.
type Slot struct {
	// These are changed under the pool's mutex.
	ctx     context.Context // steps of a statement take none, and must end with the one that it was prepared with
	turn    uint64          // grows: the reader that is held for longest has the lowest
	revoked atomic.Bool
}

// Context returns the context of the holder.
func (s *Slot) Context() context.Context { return s.ctx }

// Err returns the error that ends the running statement: that of its context, or that its caller holds more than its share.
func (s *Slot) Err() error {
	if s.revoked.Load() {
		return errRevoked
	}
	return s.ctx.Err()
}

// Pool holds the readers.
type Pool[R Reader] struct {
	allowed func() error // rejects a goroutine that must not wait for a reader

	mu      sync.Mutex
	all     []R
	free    []R
	turns   uint64
	waiting waitQueue[R]
	closed  bool

	closing  chan struct{} // closed by Close
	returned chan struct{} // receives one value for each reader that is returned after that
	revoked  atomic.Uint64
}

// New returns a pool of all readers. allowed returns an error for a goroutine that must not wait for a reader.
func New[R Reader](all []R, allowed func() error) *Pool[R] {
	return &Pool[R]{
		allowed: allowed, all: all, free: append([]R(nil), all...),
		waiting: newWaitQueue[R](), closing: make(chan struct{}), returned: make(chan struct{}, len(all)),
	}
}

// Size returns the number of readers.
func (p *Pool[R]) Size() int { return len(p.all) }

// Revocations returns how many statements were ended because their caller held more than its share.
func (p *Pool[R]) Revocations() uint64 { return p.revoked.Load() }

// Take waits for a reader and binds it to the context.
func (p *Pool[R]) Take(ctx context.Context) (r R, err error) {
	if err := cmp.Or(ctx.Err(), p.allowed()); err != nil {
		return r, err
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return r, engine.ErrClosed
	}
	if n := len(p.free); n > 0 { // then no query waits
		r = p.free[n-1]
		p.free = p.free[:n-1]
		p.assign(ctx, r)
		p.mu.Unlock()
		return p.prepared(r)
	}
	w, err := p.waiting.add(ctx)
	p.mu.Unlock()
	if err != nil {
		return r, err
	}
	return p.wait(w)
}

// wait waits until a query is served.
func (p *Pool[R]) wait(w *waiter[R]) (none R, err error) {
	timeout, grace := time.NewTimer(maxWait), time.NewTimer(shareGrace)
	defer timeout.Stop()
	defer grace.Stop()
	for err == nil {
		select {
		case r := <-w.served:
			return p.prepared(r)
		case <-grace.C:
			p.EnforceShares(w.caller)
			grace.Reset(shareGrace)
		case <-w.ctx.Done():
			err = w.ctx.Err()
		case <-p.closing:
			err = engine.ErrClosed
		case <-timeout.C:
			err = fmt.Errorf("%w: no reader became free", engine.ErrBusy)
		}
	}
	p.mu.Lock()
	removed := p.waiting.remove(w)
	p.mu.Unlock()
	if !removed { // served in the meantime
		p.Put(<-w.served)
	}
	return none, err
}

// assign binds a reader to its new holder.
func (p *Pool[R]) assign(ctx context.Context, r R) {
	p.turns++
	s := r.Pooled()
	s.ctx, s.turn = ctx, p.turns
	s.revoked.Store(false)
}

// prepared prepares a reader, or returns it to the pool when that fails.
func (p *Pool[R]) prepared(r R) (none R, err error) {
	if err := r.Prepare(); err != nil {
		p.Put(r)
		return none, err
	}
	return r, nil
}

// Put assigns a reader to the next query that waits, or keeps it.
func (p *Pool[R]) Put(r R) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.Pooled().ctx = nil
	if p.closed {
		r.Close()
		p.returned <- struct{}{}
		return
	}
	if w := p.waiting.next(p.held, len(p.all)/2); w != nil {
		p.assign(w.ctx, r)
		w.served <- r
		return
	}
	p.free = append(p.free, r)
}

// Waiting returns how many queries wait for a reader.
func (p *Pool[R]) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting.length
}

// Close closes the readers. It waits for those in use, but not for ever.
func (p *Pool[R]) Close() {
	p.mu.Lock()
	p.closed = true
	free := p.free
	p.free = nil
	p.mu.Unlock()
	close(p.closing)
	for _, r := range free {
		r.Close()
	}
	timeout := time.NewTimer(maxWait)
	defer timeout.Stop()
	for range len(p.all) - len(free) {
		select {
		case <-p.returned:
		case <-timeout.C:
			return
		}
	}
}
