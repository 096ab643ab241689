package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"kontor/store/internal/sqlite"
)

const (
	// queueLength is how many closures may wait. At the measured rate that is a tenth of a second of
	// work; whoever comes later is better told to come again than kept waiting.
	queueLength = 1024
	// groupLength and groupTime bound what is committed together, so that the first of a group does
	// not wait for an endless stream of others.
	groupLength = 512
	groupTime   = 20 * time.Millisecond
	// tries is how often a closure runs whose transaction was lost through another closure's failure.
	tries = 2
)

// The states of a job.
const (
	waiting int32 = iota
	taken         // by the writer: it will be answered
	abandoned
)

// job is one call of InTx.
type job struct {
	ctx   context.Context
	fn    func(*Tx) error
	state atomic.Int32
	runs  int
	tx    *Tx
	err   error
	panic *panicked
	done  chan struct{}
}

// panicked is what a closure panicked with, carried to the goroutine of its caller.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) String() string {
	return fmt.Sprintf("%v\n\nin a transaction:\n%s", p.value, p.stack)
}

// writer owns the connection that writes. One goroutine runs the closures of everybody who waits, one
// after another, each under its own savepoint, and commits them together with one sync.
type writer struct {
	db    *DB
	log   *slog.Logger
	conn  *sqlite.Conn
	queue chan *job
	stop  chan struct{} // closed by close: no more jobs are taken in
	ended chan struct{} // closed when the last one is answered
	hooks *hookQueue
	trail trail

	inflight sync.RWMutex // held for reading while a job is put into the queue
	closed   bool

	group []*job // of the transaction that is open
	again []*job // whose transaction was lost; they run first in the next

	checkpoints *checkpointer
	counters    counters
}

// InTx runs fn in a transaction on the one connection that writes, and returns when what it wrote is
// safely on disk. An error from fn, or a panic, undoes what this fn did and nothing else. fn may run
// twice, so it has no effects but through tx; it must be quick, for others wait, and may not call InTx
// itself.
//
// ErrBusy comes when too many wait already, the context's error when it ended before fn had begun;
// *Replay when the context carries an idempotency key that has been answered.
func (db *DB) InTx(ctx context.Context, fn func(tx *Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &job{ctx: ctx, fn: fn, done: make(chan struct{})}
	if err := db.writer.enqueue(j); err != nil {
		return err
	}
	select {
	case <-j.done:
	case <-ctx.Done():
		if j.state.CompareAndSwap(waiting, abandoned) {
			return ctx.Err()
		}
		<-j.done
	}
	if j.panic != nil {
		panic(j.panic.String())
	}
	return j.err
}

func (w *writer) enqueue(j *job) error {
	w.inflight.RLock()
	defer w.inflight.RUnlock()
	if w.closed {
		return ErrClosed
	}
	select {
	case w.queue <- j:
		return nil
	default:
		w.counters.refused.Add(1)
		return fmt.Errorf("%w: %d writes wait", ErrBusy, queueLength)
	}
}

// loop serves the queue until close. When something takes its goroutine down (a panic here, or
// runtime.Goexit in a closure), the open group is answered and another goroutine goes on.
func (w *writer) loop() {
	finished := false
	defer func() {
		if finished {
			close(w.ended)
			return
		}
		cause := recover()
		w.log.Error("writer stopped; it goes on", "cause", cause, "stack", string(debug.Stack()))
		w.abandonGroup(fmt.Errorf("transaction ended by its closure: %v", cause))
		go w.loop()
	}()
	for {
		if len(w.again) > 0 {
			w.commitGroup(nil)
			continue
		}
		select {
		case j := <-w.queue:
			w.commitGroup(j)
		case <-w.stop:
			// Nothing is put in any more.
			select {
			case j := <-w.queue:
				w.commitGroup(j)
			default:
				finished = true
				return
			}
		}
	}
}

// close waits until every job that was taken in is answered.
func (w *writer) close() {
	w.inflight.Lock()
	already := w.closed
	w.closed = true
	w.inflight.Unlock()
	if !already {
		close(w.stop)
	}
	<-w.ended
}

// commitGroup runs, in one transaction, the closures whose transaction was lost, first, and all that
// waits behind it.
func (w *writer) commitGroup(first *job) {
	if first != nil {
		w.again = append(w.again, first)
	}
	if err := runKept(w.conn, beginWrite); err != nil {
		w.refuse(err)
		return
	}
	begun := time.Now()
	intact := true
	for n := 0; intact && n < groupLength; n++ {
		j := w.next(time.Since(begun) < groupTime)
		if j == nil {
			break
		}
		intact = w.run(j)
	}
	if intact {
		w.commit()
	} else {
		w.lost()
	}
}

// next gives the job to run: one that runs again, else one from the queue as long as more is wanted.
func (w *writer) next(more bool) *job {
	if len(w.again) > 0 {
		j := w.again[0]
		w.again = w.again[1:]
		return j
	}
	if !more {
		return nil
	}
	select {
	case j := <-w.queue:
		return j
	default:
		return nil
	}
}

// refuse answers those whose transaction could not begin.
func (w *writer) refuse(err error) {
	w.failed(err)
	for _, j := range w.again {
		if j.runs > 0 || j.state.CompareAndSwap(waiting, taken) {
			w.answer(j, err)
		}
	}
	w.again = nil
}

// run runs a job's closure under a savepoint. It tells whether the transaction is still there.
func (w *writer) run(j *job) bool {
	if j.runs == 0 && !j.state.CompareAndSwap(waiting, taken) {
		return true
	}
	if j.runs == 0 && j.ctx.Err() != nil {
		w.answer(j, j.ctx.Err())
		return true
	}
	j.runs++
	w.group = append(w.group, j)
	err := runKept(w.conn, savepoint)
	if err == nil {
		mark := w.trail
		j.tx = &Tx{db: w.db, conn: w.conn, now: w.db.Now()}
		if err = w.call(j); err == nil {
			err = runKept(w.conn, release)
		}
		j.tx.ended = true
		w.conn.ResetAll()
		if err != nil {
			w.trail = mark
		}
	}
	if err == nil {
		return true
	}
	w.group = w.group[:len(w.group)-1]
	intact := w.conn.InTransaction() &&
		runKept(w.conn, rollbackTo) == nil && runKept(w.conn, release) == nil
	w.failed(err)
	w.answer(j, err)
	return intact
}

// call runs the closure and stores what goes with it: the audit entries and the answer to a replay.
func (w *writer) call(j *job) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			j.panic = &panicked{value: v, stack: debug.Stack()}
			err = errPanic
		}
	}()
	tx := j.tx
	if err = tx.begin(j.ctx); err == nil {
		if err = j.fn(tx); err == nil {
			err = tx.err // fn went on after a failed statement
		}
		if err == nil {
			err = tx.finish(j.ctx, &w.trail)
		}
	}
	returned = true
	return err
}

var errPanic = errors.New("panic in a transaction")

// commit commits the group and answers everybody in it.
func (w *writer) commit() {
	group := w.group
	w.group = nil
	if len(group) == 0 {
		if err := runKept(w.conn, rollback); err != nil {
			w.failed(err)
		}
		return
	}
	err := w.trail.sign(w)
	if err == nil {
		err = runKept(w.conn, commit)
	}
	if err != nil {
		w.undo()
		w.failed(err)
		for _, j := range group {
			w.answer(j, err)
		}
		return
	}
	w.counters.failing.Store(nil)
	var touched []*table
	for _, j := range group {
		for _, t := range j.tx.touched {
			touched = appendMissing(touched, t)
		}
		j.tx.claim.settle(j.tx.answer)
	}
	w.db.versions.bump(touched)
	w.counters.closures.Add(uint64(len(group)))
	if len(touched) > 0 {
		w.counters.commits.Add(1)
	}
	for _, j := range group {
		w.answer(j, nil)
	}
	w.checkpoints.committed(w.conn)
}

// lost handles a transaction that a closure's failure took down with it, as a full disk may: the
// others run once more.
func (w *writer) lost() {
	group := w.group
	w.group = nil
	w.undo()
	for _, j := range group {
		if j.runs >= tries {
			w.answer(j, fmt.Errorf("%w: the transaction was lost with another's failure", ErrBusy))
			continue
		}
		w.again = append(w.again, j)
	}
}

// abandonGroup answers everybody in the open group after the writer's goroutine ended.
func (w *writer) abandonGroup(err error) {
	group := w.group
	w.group = nil
	w.conn.ResetAll()
	w.undo()
	for _, j := range group {
		w.answer(j, err)
	}
}

// undo ends the open transaction, if there is one, and forgets what was remembered of it.
func (w *writer) undo() {
	w.trail.forget()
	if w.conn.InTransaction() {
		if err := runKept(w.conn, rollback); err != nil {
			w.log.Error("rollback failed", "err", err)
		}
	}
}

// failed remembers a failure of the storage, as opposed to one of a closure.
func (w *writer) failed(err error) {
	if errors.Is(err, ErrFull) || errors.Is(err, ErrReadOnly) || errors.Is(err, ErrCorrupt) {
		w.counters.failing.Store(&err)
	}
}

// answer lets a job's caller go on: after its hooks, if it has some.
func (w *writer) answer(j *job, err error) {
	j.err = err
	if err != nil || len(j.tx.hooks) == 0 {
		close(j.done)
		return
	}
	w.hooks.add(j)
}
