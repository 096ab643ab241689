package store

import (
	"errors"
	"fmt"
	"time"
)

const (
	// groupLength and groupTime bound what is committed together, so that the first of a group does
	// not wait for an endless stream of others.
	groupLength = 512
	groupTime   = 20 * time.Millisecond
	// groupEnough is from which size a group does not wait for more, once the disk is free for it.
	groupEnough = 32
	// tries is how often a closure runs whose transaction was lost through another closure's failure.
	tries = 3
)

// commitGroup runs, in one transaction, the closures whose transaction was lost, first, and all that
// waits behind it.
func (w *writer) commitGroup(first *job) {
	if first != nil {
		w.again = append(w.again, first)
	}
	if err := w.begin(); err != nil {
		w.refuse(err)
		return
	}
	w.careful = len(w.again) > 1 || w.again[0].runs > 0
	begun := time.Now()
	intact := true
	for n := 0; intact && n < groupLength; n++ {
		j := w.next(begun)
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

// begin opens the transaction of a group.
func (w *writer) begin() error {
	if err := w.db.disk.err(); err != nil {
		return err
	}
	w.changed = w.conn.TotalChanged()
	return runKept(w.conn, beginWrite)
}

// next gives the job to run: one that runs again, else one from the queue. It gives none when the group is to be
// committed: when the disk is free and nobody waits, or enough is in the group.
func (w *writer) next(begun time.Time) *job {
	if len(w.again) > 0 {
		j := w.again[0]
		w.again = w.again[1:]
		return j
	}
	if len(w.group) >= groupEnough || time.Since(begun) > groupTime {
		if w.diskFree() {
			return nil
		}
	}
	select {
	case j := <-w.queue:
		return j
	default:
	}
	if w.spare != nil {
		return nil
	}
	select {
	case j := <-w.queue:
		return j
	case w.spare = <-w.syncer.free:
		return nil
	}
}

// diskFree tells whether a commit made now would be synced at once.
func (w *writer) diskFree() bool {
	if w.spare == nil {
		select {
		case w.spare = <-w.syncer.free:
		default:
		}
	}
	return w.spare != nil
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

// commit commits the group and hands it to the syncer, who answers everybody in it. That includes those who failed: what
// they found may be what others in the group have written. The group stays the writer's until then, so that nobody is
// forgotten, whatever happens here.
func (w *writer) commit() {
	if len(w.group) == 0 {
		if err := runKept(w.conn, rollback); err != nil {
			w.failed(err)
		}
		return
	}
	next, err := w.advance()
	if err == nil {
		err = runKept(w.conn, commit)
	}
	if err != nil {
		w.undo()
		err = w.db.disk.prefer(err)
		w.failed(err)
		w.answerGroup(err)
		return
	}
	w.position = next
	touched := w.count()
	w.db.versions.bump(touched)
	w.handOver(len(touched) > 0)
	w.checkpoints.committed(w.conn)
}

// advance writes, once for each group that has changed something, the signed end of the audit trail and the number of the
// commit, and returns where the database will be.
func (w *writer) advance() (position, error) {
	if err := w.trail.sign(w); err != nil {
		return position{}, err
	}
	next := w.position
	if w.conn.TotalChanged() == w.changed {
		return next, nil
	}
	if w.trail.known {
		next.head = w.trail.head
	}
	next.commits, next.clean, next.at = next.commits+1, false, w.db.Now()
	return next, storeMeta(w.conn, metaCommits, w.db.secrets.signCommits(next))
}

// count counts a group that is committed, and gives the tables that it wrote to.
func (w *writer) count() (touched []*table) {
	for _, j := range w.group {
		if j.err != nil {
			continue
		}
		w.counters.closures.Add(1)
		for _, t := range j.tx.touched {
			touched = appendMissing(touched, t)
		}
	}
	if len(touched) > 0 {
		w.counters.commits.Add(1)
		w.counters.failing.Store(nil)
	}
	return touched
}

// handOver gives the group to the syncer, as soon as he is free.
func (w *writer) handOver(wrote bool) {
	if w.spare == nil {
		w.spare = <-w.syncer.free
	}
	done := w.group
	w.group, w.spare = w.spare, nil
	w.syncer.groups <- committed{jobs: done, wrote: wrote, position: w.position}
}

// lost handles a transaction that a closure's failure took down with it: the others run once more.
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
		if err := runKept(w.conn, rollback); err != nil && w.db.disk.err() == nil {
			w.log.Error("rollback failed", "err", err)
		}
	}
}

// failed remembers a failure of the storage, as opposed to one of a closure.
func (w *writer) failed(err error) {
	if errors.Is(err, ErrFull) || errors.Is(err, ErrIO) || errors.Is(err, ErrReadOnly) || errors.Is(err, ErrCorrupt) {
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
