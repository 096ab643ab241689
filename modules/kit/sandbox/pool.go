package sandbox

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// Pool keeps the workers of one kind. It starts a worker when none is idle. It does not limit the number of workers; use a
// [Queue] in front of it. It is safe for concurrent use.
type Pool struct {
	config Config

	mutex   sync.Mutex
	idle    []*worker // the most recently used one is last
	all     map[*worker]struct{}
	closed  bool
	started bool

	// starting serialises the preparation of workers, so that later ones find what the first one cached, such as compiled
	// code.
	starting chan struct{}
}

// NewPool returns a Pool without workers.
func NewPool(config Config) *Pool {
	return &Pool{config: config.withDefaults(), all: map[*worker]struct{}{}, starting: make(chan struct{}, 1)}
}

// Lease is the exclusive use of a worker.
type Lease struct {
	pool   *Pool
	worker *worker
}

// Acquire returns a lease on an idle worker or on a new one. When the context ends before a new worker is ready, the start
// continues and the worker becomes idle. The caller must call [Lease.Run] once, or [Lease.Release].
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
				p.release(w)
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

// takeIdle removes an idle worker from the pool and returns it, or returns nil.
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
		p.discard(w) // another process killed it
	}
	return nil, nil
}

// startNext waits until no other worker is being started. It then returns an idle worker, or starts one.
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

// Run sends a request and a file to the worker and returns its answer. It calls part for each part of the answer before the
// last one. When the context ends, Run kills the worker and returns the error of the context. A worker that fails yields a
// *CrashError. Run releases the lease.
func (l *Lease) Run(ctx context.Context, request, file []byte, part func([]byte) error) ([]byte, error) {
	answer, err := l.worker.serve(ctx, request, file, part)
	if err != nil {
		l.pool.forget(l.worker)
		return nil, err
	}
	l.Release()
	return answer, nil
}

// RunChecked is like [Lease.Run] for an answer of one part. The worker is ended if check returns an error, and RunChecked returns
// that error.
func (l *Lease) RunChecked(ctx context.Context, request, file []byte, check func(answer []byte) error) error {
	answer, err := l.worker.serve(ctx, request, file, func([]byte) error { return errPart })
	if err == nil {
		if err = check(answer); err != nil {
			l.worker.end()
		}
	}
	if err != nil {
		l.pool.forget(l.worker)
		return err
	}
	l.Release()
	return nil
}

var errPart = errors.New("unexpected part of an answer")

// IsNew reports whether the worker has processed nothing before. A worker that was idle may have been killed without its parent
// having noticed.
func (l *Lease) IsNew() bool { return l.worker.jobs == 0 }

// Release returns the worker to the pool.
func (l *Lease) Release() { l.pool.release(l.worker) }

// release makes a worker idle. It ends a worker that is due for replacement, or whose pool is closed.
func (p *Pool) release(w *worker) {
	replace := w.needsReplacement()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if replace || p.closed {
		p.discard(w)
		return
	}
	p.idle = append(p.idle, w)
	w.idle = time.AfterFunc(p.config.Idle, func() { p.expire(w) })
}

// discard ends a worker without waiting. The caller holds the mutex.
func (p *Pool) discard(w *worker) {
	delete(p.all, w)
	w.kill()
	go w.end()
}

// expire ends a worker that is still idle.
func (p *Pool) expire(w *worker) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if i := slices.Index(p.idle, w); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
		p.discard(w)
	}
}

// forget removes a worker that has ended.
func (p *Pool) forget(w *worker) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.all, w)
}

// Started reports whether the pool has ever started a worker.
func (p *Pool) Started() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.started
}

// Close kills all workers and waits until they have ended, or the context ends. Running calls of [Lease.Run] fail.
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
