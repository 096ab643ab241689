package store

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"kontor/store/internal/sqlite"
)

// queueLength is how many closures may wait. At the measured rate that is a tenth of a second of work;
// whoever comes later is better told to come again than kept waiting.
const queueLength = 1024

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

	answered bool // or handed to the hooks, which then close done
	done     chan struct{}
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
// after another, and commits them together; the syncer makes the commit durable and answers.
type writer struct {
	db    *DB
	log   *slog.Logger
	conn  *sqlite.Conn
	queue chan *job
	stop  chan struct{} // closed by close: no more jobs are taken in
	ended chan struct{} // closed when the last one is answered
	hooks *hookQueue
	trail trail

	position position // of the newest commit
	changed  int64    // rows that the connection had changed when the group began

	inflight sync.RWMutex // held for reading while a job is put into the queue
	closed   bool

	group   []*job // of the transaction that is open
	careful bool   // each closure of the group has a savepoint
	spare   []*job // list for the next group; taken from the syncer, whose disk is free then
	again   []*job // whose transaction was lost; they run first in the next

	syncer      *syncer
	checkpoints *checkpointer
	counters    counters
}

// InTx runs fn in a transaction on the one connection that writes, and returns when what it wrote, or
// was refused for, is safely on disk. An error from fn, or a panic, undoes what this fn did and nothing
// else. fn may run more than once, so it has no effects but through tx; it must be quick, for others
// wait, and may not call InTx itself.
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
// runtime.Goexit in a closure), everybody in the open group is answered and another goroutine goes on.
func (w *writer) loop() {
	finished := false
	defer func() {
		if finished {
			close(w.ended)
			return
		}
		cause := recover()
		if cause == nil {
			cause = "its goroutine was ended"
		}
		w.log.Error("writer stopped; it goes on", "cause", cause, "stack", string(debug.Stack()))
		w.abandonGroup(fmt.Errorf("transaction was not finished: %v", cause))
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
