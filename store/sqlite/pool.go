package sqlite

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"kontor/store/engine"
)

// pool holds the readers. While none is free, callers wait in a queue.
type pool struct {
	path    string
	allowed func() error // rejects a goroutine that must not wait for a reader

	rollback func(*reader) error

	mu      sync.Mutex
	all     []*reader
	free    []*reader
	turns   uint64
	waiting waitQueue
	closed  bool

	closing  chan struct{} // closed by close
	returned chan struct{} // receives one value for each reader that is returned after that
	revoked  atomic.Uint64
}

func openPool(path string, allowed func() error) (*pool, error) {
	p := &pool{
		path: path, allowed: allowed, rollback: func(r *reader) error { return runKept(r.conn, rollback) },
		waiting: newWaitQueue(), closing: make(chan struct{}), returned: make(chan struct{}, readers),
	}
	for range readers {
		r := &reader{pool: p}
		if err := r.open(); err != nil {
			p.close()
			return nil, err
		}
		p.all = append(p.all, r)
		p.free = append(p.free, r)
	}
	return p, nil
}

// take waits for a reader and binds it to the context.
func (p *pool) take(ctx context.Context) (*reader, error) {
	if err := p.allowed(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, engine.ErrClosed
	}
	if n := len(p.free); n > 0 { // then no query waits
		r := p.free[n-1]
		p.free = p.free[:n-1]
		p.assign(ctx, r)
		p.mu.Unlock()
		return r, r.prepareHolder()
	}
	w, err := p.waiting.add(ctx)
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return p.wait(w)
}

// wait waits until a query is served.
func (p *pool) wait(w *waiter) (*reader, error) {
	timeout, grace := time.NewTimer(readerWait), time.NewTimer(shareGrace)
	defer timeout.Stop()
	defer grace.Stop()
	var err error
	for err == nil {
		select {
		case r := <-w.served:
			return r, r.prepareHolder()
		case <-grace.C:
			p.enforceShares(w)
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
		(<-w.served).release()
	}
	return nil, err
}

// assign binds a reader to its new holder.
func (p *pool) assign(ctx context.Context, r *reader) {
	p.turns++
	r.ctx, r.turn = ctx, p.turns
	r.revoked.Store(false)
}

// prepareHolder connects the reader if necessary and makes its statements end with the holder's context.
func (r *reader) prepareHolder() error {
	if r.conn == nil {
		if err := r.open(); err != nil {
			r.pool.put(r)
			return err
		}
	}
	r.conn.SetContext(r)
	return nil
}

// put assigns a reader to the next query that waits, or keeps it.
func (p *pool) put(r *reader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.ctx = nil
	if p.closed {
		r.close()
		p.returned <- struct{}{}
		return
	}
	if w := p.waiting.next(p.held); w != nil {
		p.assign(w.ctx, r)
		w.served <- r
		return
	}
	p.free = append(p.free, r)
}

// waitingQueries returns how many queries wait for a reader.
func (p *pool) waitingQueries() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting.length
}

// close closes the readers. It waits for those in use, but not for ever.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	free := p.free
	p.free = nil
	p.mu.Unlock()
	close(p.closing)
	for _, r := range free {
		r.close()
	}
	timeout := time.NewTimer(readerWait)
	defer timeout.Stop()
	for range len(p.all) - len(free) {
		select {
		case <-p.returned:
		case <-timeout.C:
			return
		}
	}
}
