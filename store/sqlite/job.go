package sqlite

// run runs a job. It reports whether the transaction is intact: it holds the writes of the jobs before, and none of a failed
// job.
//
// A job that fails after it has written loses the transaction of the whole group. A savepoint for each job would undo it
// alone, but copies the changed pages at every write, and jobs that fail nearly always do so before they write. After a
// loss the other jobs run once more, each with a savepoint.
func (w *writer) run(j *job) (intact bool) {
	if ok, err := j.Begin(); !ok {
		if err != nil {
			w.answer(j, err)
		}
		return true
	}
	defer j.Ended()
	w.group = append(w.group, j)
	w.guard.Save()
	changed := w.conn.TotalChanged()
	w.progress.Begin(&w.progress.Writer)
	if j.Err = w.setSavepoint(); j.Err == nil {
		j.tx = &j.firstTx
		if j.Runs > 1 { // an earlier Tx that the function has kept must stay closed
			j.tx = &tx{}
		}
		j.tx.begin(j, w.versions, w.conn)
		if j.Err = j.Call(j.tx); j.Err == nil {
			j.Err = w.releaseSavepoint()
		}
		j.tx.ended = true
		w.conn.ResetAll()
	}
	if j.Err == nil {
		return true
	}
	w.guard.Restore()
	w.noteFailure(j.Err)
	intact = w.conn.InTransaction()
	if w.useSavepoints {
		intact = intact && runKept(w.conn, rollbackTo) == nil && runKept(w.conn, release) == nil
	} else {
		intact = intact && w.conn.TotalChanged() == changed
	}
	if !intact {
		w.group = w.group[:len(w.group)-1]
		w.answer(j, j.Err)
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
