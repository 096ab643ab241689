package store

import (
	"errors"
	"runtime/debug"
)

var errPanic = errors.New("panic in a transaction")

// run runs a job's closure. It tells whether the transaction is intact: what the closures before have done is there,
// and nothing of a closure that failed.
//
// A closure that fails after it has written takes the group with it: a savepoint for each closure would undo it alone,
// but at every write it copies the pages that change, and closures that fail nearly always do so before they write. The
// others run once more, each under a savepoint then.
func (w *writer) run(j *job) (intact bool) {
	before := ran
	if j.runs == 0 {
		before = waiting
	}
	if !j.state.CompareAndSwap(before, taken) {
		if j.runs > 0 { // undone, and nobody waits for it any more
			w.answer(j, ErrOutcomeUnknown)
		}
		return true
	}
	defer j.state.Store(ran)
	if j.runs == 0 && j.ctx.Err() != nil {
		w.answer(j, j.ctx.Err())
		return true
	}
	j.runs++
	j.err, j.panic = nil, nil
	w.group = append(w.group, j)
	trail, changed := w.trail, w.conn.TotalChanged()
	w.progress.begin(&w.progress.writer)
	j.err = w.mark()
	if j.err == nil {
		j.tx = &Tx{db: w.db, conn: w.conn, now: w.db.Now()}
		w.noteTime(j.tx.now)
		if j.err = w.call(j); j.err == nil {
			j.err = w.unmark()
		}
		j.tx.ended = true
		w.conn.ResetAll()
	}
	if j.err == nil {
		return true
	}
	w.trail = trail
	w.failed(j.err)
	intact = w.conn.InTransaction()
	if w.careful {
		intact = intact && runKept(w.conn, rollbackTo) == nil && runKept(w.conn, release) == nil
	} else {
		intact = intact && w.conn.TotalChanged() == changed
	}
	if !intact {
		w.group = w.group[:len(w.group)-1]
		w.answer(j, j.err)
	}
	return intact
}

// mark remembers the state before a closure, in a careful group.
func (w *writer) mark() error {
	if !w.careful {
		return nil
	}
	return runKept(w.conn, savepoint)
}

// unmark keeps what a closure did since mark.
func (w *writer) unmark() error {
	if !w.careful {
		return nil
	}
	return runKept(w.conn, release)
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
