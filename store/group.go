package store

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

const (
	// groupLength and groupTime bound what is committed together, so that the first of a group does
	// not wait for an endless stream of others.
	groupLength = 512
	groupTime   = 20 * time.Millisecond
	// tries is how often a closure runs whose transaction was lost through another closure's failure.
	tries = 2
)

var errPanic = errors.New("panic in a transaction")

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

// commit commits the group and answers everybody in it. The group stays the writer's until then, so
// that nobody is forgotten, whatever happens here.
func (w *writer) commit() {
	if len(w.group) == 0 {
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
		w.answerGroup(err)
		return
	}
	var touched []*table
	for _, j := range w.group {
		for _, t := range j.tx.touched {
			touched = appendMissing(touched, t)
		}
		j.tx.claim.settle(j.tx.answer)
	}
	w.db.versions.bump(touched)
	w.counters.closures.Add(uint64(len(w.group)))
	if len(touched) > 0 {
		w.counters.commits.Add(1)
		w.counters.failing.Store(nil)
	}
	w.answerGroup(nil)
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
	w.conn.ResetAll()
	w.undo()
	w.answerGroup(err)
}

func (w *writer) answerGroup(err error) {
	for _, j := range w.group {
		w.answer(j, err)
	}
	clear(w.group)
	w.group = w.group[:0]
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
	if j.answered {
		return
	}
	j.answered = true
	j.err = err
	if err != nil || len(j.tx.hooks) == 0 {
		close(j.done)
		return
	}
	w.hooks.add(j)
}
