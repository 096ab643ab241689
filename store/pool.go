package store

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// pool holds the readers. A reader that is free goes to whoever comes; while none is, callers wait in line.
type pool struct {
	path   string
	refuse func() error // rejects a goroutine that must not wait for a reader

	rollback func(*reader) error

	mu     sync.Mutex
	all    []*reader
	free   []*reader
	turns  uint64
	line   line
	closed bool

	ending  chan struct{} // closed by close
	back    chan struct{} // one for each reader that comes back after that
	revoked atomic.Uint64
}

func openPool(path string, refuse func() error) (*pool, error) {
	p := &pool{
		path: path, refuse: refuse, rollback: func(r *reader) error { return runKept(r.conn, rollback) },
		line: newLine(), ending: make(chan struct{}), back: make(chan struct{}, readers),
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
	if err := p.refuse(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	if n := len(p.free); n > 0 { // then nobody waits
		r := p.free[n-1]
		p.free = p.free[:n-1]
		p.hold(ctx, r)
		p.mu.Unlock()
		return r, r.ready()
	}
	w, err := p.line.join(ctx)
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return p.wait(w)
}

// wait waits for a reader in line.
func (p *pool) wait(w *waiter) (*reader, error) {
	timeout, grace := time.NewTimer(readerWait), time.NewTimer(shareGrace)
	defer timeout.Stop()
	defer grace.Stop()
	var err error
	for err == nil {
		select {
		case r := <-w.served:
			return r, r.ready()
		case <-grace.C:
			p.enforceShares(w)
			grace.Reset(shareGrace)
		case <-w.ctx.Done():
			err = w.ctx.Err()
		case <-p.ending:
			err = ErrClosed
		case <-timeout.C:
			err = fmt.Errorf("%w: no reader became free", ErrBusy)
		}
	}
	p.mu.Lock()
	waiting := p.line.leave(w)
	p.mu.Unlock()
	if !waiting { // served just now
		(<-w.served).release()
	}
	return nil, err
}

// hold binds a reader to its new holder.
func (p *pool) hold(ctx context.Context, r *reader) {
	p.turns++
	r.ctx, r.turn = ctx, p.turns
	r.revoked.Store(false)
}

// ready prepares the connection for its new holder.
func (r *reader) ready() error {
	if r.conn == nil {
		if err := r.open(); err != nil {
			r.pool.put(r)
			return err
		}
	}
	r.conn.SetContext(r)
	return nil
}

// put gives a reader to the next in line, or keeps it.
func (p *pool) put(r *reader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.ctx = nil
	if p.closed {
		r.close()
		p.back <- struct{}{}
		return
	}
	if w := p.line.next(p.share); w != nil {
		p.hold(w.ctx, r)
		w.served <- r
		return
	}
	p.free = append(p.free, r)
}

func (r *reader) close() {
	if r.conn != nil {
		r.conn.Close()
	}
}

// waits is how many callers wait for a reader.
func (p *pool) waits() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.line.length
}

// close closes the readers, and waits for those in use.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	free := p.free
	p.free = nil
	p.mu.Unlock()
	close(p.ending)
	for _, r := range free {
		r.close()
	}
	timeout := time.NewTimer(readerWait)
	defer timeout.Stop()
	for range len(p.all) - len(free) {
		select {
		case <-p.back:
		case <-timeout.C:
			return
		}
	}
}
