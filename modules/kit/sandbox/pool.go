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
func (l *Lease) Run(ctx context.Context, request, file []byte, part func([]byte) error) (answer []byte, err error) {
	err = l.run(ctx, request, file, part, func(last []byte) error {
		answer = last
		return nil
	})
	return answer, err
}

// RunChecked is like [Lease.Run] for an answer of one part. The worker is ended if check returns an error, and RunChecked returns
// that error.
func (l *Lease) RunChecked(ctx context.Context, request, file []byte, check func(answer []byte) error) error {
	return l.run(ctx, request, file, func([]byte) error { return errPart }, check)
}

func (l *Lease) run(ctx context.Context, request, file []byte, part, check func([]byte) error) error {
	answer, err := l.worker.serve(ctx, request, file, part)
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

// NewQueue returns a Queue of files of at most largest bytes; 1: sizes do not matter. A file waits for a slot no longer than wait.
func NewQueue(slots int, wait time.Duration, largest int) *Queue {
	return &Queue{free: slots, share: max(1, slots-1), wait: wait, holds: map[string]int{}, largest: largest}
}

// Acquire acquires a slot for a file that has a number of bytes in memory. Call release when done. Acquire returns ErrBusy when
// too many files wait or when this one has waited too long, and the error of the context when that ends.
func (q *Queue) Acquire(ctx context.Context, caller string, bytes int) (release func(), err error) {
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
