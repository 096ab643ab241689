package sqlite

import (
	"errors"
	"runtime/debug"

	"kontor/store/engine"
)

var errPanic = errors.New("panic in a transaction")

// run runs a job. It reports whether the transaction is intact: it holds the writes of the jobs before, and none of a failed
// job.
//
// A job that fails after it has written loses the transaction of the whole group. A savepoint for each job would undo it
// alone, but copies the changed pages at every write, and jobs that fail nearly always do so before they write. After a
// loss the other jobs run once more, each with a savepoint.
func (w *writer) run(j *job) (intact bool) {
	before := ran
	if j.runs == 0 {
		before = waiting
	}
	if !j.state.CompareAndSwap(before, taken) {
		if j.runs > 0 { // undone, and its caller has left
			w.answer(j, engine.ErrOutcomeUnknown)
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
	w.guard.Save()
	changed := w.conn.TotalChanged()
	w.progress.begin(&w.progress.writer)
	if j.err = w.setSavepoint(); j.err == nil {
		j.tx = &j.firstTx
		if j.runs > 1 { // an earlier Tx that fn has kept must stay closed
			j.tx = &tx{}
		}
		j.tx.begin(w.versions, w.conn)
		if j.err = j.call(); j.err == nil {
			j.err = w.releaseSavepoint()
		}
		j.tx.ended = true
		w.conn.ResetAll()
	}
	if j.err == nil {
		return true
	}
	w.guard.Restore()
	w.noteFailure(j.err)
	intact = w.conn.InTransaction()
	if w.useSavepoints {
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

func (w *writer) setSavepoint() error {
	if !w.useSavepoints {
		return nil
	}
	return runKept(w.conn, savepoint)
}

func (w *writer) releaseSavepoint() error {
	if !w.useSavepoints {
		return nil
	}
	return runKept(w.conn, release)
}

// call calls the function of the job and recovers its panic.
func (j *job) call() (err error) {
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
	if err = j.fn(j.tx); err == nil {
		err = j.tx.err // the job continued after a failed statement
	}
	returned = true
	return err
}
