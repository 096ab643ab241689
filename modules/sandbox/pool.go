package sandbox

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Pool keeps the workers of one kind. It starts one when a file comes and none is idle; how many files come at once is
// bounded by a [Queue] before it. It is safe for concurrent use.
type Pool struct {
	config Config

	mutex   sync.Mutex
	idle    []*worker // the one used last is at the end
	all     map[*worker]struct{}
	closed  bool
	started bool

	// starting lets one worker prepare itself at a time: what the first one leaves for the others, such as compiled
	// code, must not be made twice.
	starting chan struct{}
}

// NewPool makes a Pool. No process is started yet.
func NewPool(config Config) *Pool {
	return &Pool{config: config.withDefaults(), all: map[*worker]struct{}{}, starting: make(chan struct{}, 1)}
}

// Lease is a worker that serves its holder alone.
type Lease struct {
	pool   *Pool
	worker *worker
}

// Acquire takes an idle worker, or starts one. When the context ends before a worker is ready, the start goes on for
// whoever comes next. The caller must use the lease for one [Lease.Run], or [Lease.Release] it.
func (p *Pool) Acquire(ctx context.Context) (*Lease, error) {
	if w, err := p.takeIdle(); err != nil {
		return nil, err
	} else if w != nil {
		return &Lease{p, w}, nil
	}
	type outcome struct {
		worker *worker
		err    error
	}
	ready := make(chan outcome)
	go func() {
		w, err := p.startNext()
		select {
		case ready <- outcome{w, err}:
		case <-ctx.Done():
			if err == nil {
				p.giveBack(w)
			}
		}
	}()
	select {
	case o := <-ready:
		if o.err != nil {
			return nil, o.err
		}
		return &Lease{p, o.worker}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// takeIdle takes an idle worker, or returns nil.
func (p *Pool) takeIdle() (*worker, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	for last := len(p.idle) - 1; last >= 0; last-- {
		w := p.idle[last]
		p.idle = p.idle[:last]
		w.idle.Stop()
		if !w.isGone() {
			return w, nil
		}
		p.discard(w) // something killed it while it was idle
	}
	return nil, nil
}

// startNext starts a worker when no other is being started, unless one has become idle meanwhile.
func (p *Pool) startNext() (*worker, error) {
	p.starting <- struct{}{}
	defer func() { <-p.starting }()
	w, err := p.takeIdle()
	if w != nil || err != nil {
		return w, err
	}
	if w, err = launch(p.config); err != nil {
		return nil, err
	}
	p.mutex.Lock()
	p.all[w], p.started = struct{}{}, true
	if p.closed {
		w.kill()
	}
	p.mutex.Unlock()
	if err := w.awaitReady(); err != nil {
		p.forget(w)
		return nil, err
	}
	return w, nil
}

// Run has the worker answer a request about a file. part gets what the worker sends before its last answer. When the
// context ends, the worker is killed and the error is that of the context; a worker that ends by itself is a
// *CrashError. The lease is released.
func (l *Lease) Run(ctx context.Context, request, file []byte, part func([]byte) error) ([]byte, error) {
	answer, err := l.worker.serve(ctx, request, file, part)
	if err != nil {
		l.pool.forget(l.worker)
		return nil, err
	}
	l.Release()
	return answer, nil
}

// Release gives the worker back.
func (l *Lease) Release() { l.pool.giveBack(l.worker) }

// giveBack makes a worker idle, or ends it when it is worn or the pool is closed.
func (p *Pool) giveBack(w *worker) {
	worn := w.worn()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if worn || p.closed {
		p.discard(w)
		return
	}
	p.idle = append(p.idle, w)
	w.idle = time.AfterFunc(p.config.Idle, func() { p.expire(w) })
}

// discard ends a worker without making anybody wait. The caller holds the mutex.
func (p *Pool) discard(w *worker) {
	delete(p.all, w)
	w.kill()
	go w.end()
}

// expire ends a worker that has been idle for long.
func (p *Pool) expire(w *worker) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if i := slices.Index(p.idle, w); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
		p.discard(w)
	}
}

// forget removes a worker that is gone.
func (p *Pool) forget(w *worker) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.all, w)
}

// Started reports whether the pool ever had a worker.
func (p *Pool) Started() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.started
}

// Close kills all workers and waits until they are gone, or the context ends. What they were working on fails.
func (p *Pool) Close(ctx context.Context) {
	p.mutex.Lock()
	p.closed, p.idle = true, nil
	all := slices.Collect(maps.Keys(p.all))
	p.mutex.Unlock()
	for _, w := range all {
		w.kill()
	}
	for _, w := range all {
		select {
		case <-w.ended:
			w.closePipes()
		case <-ctx.Done():
			return
		}
	}
}
