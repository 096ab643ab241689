package sqlite

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"kontor/store/clock"
	"kontor/store/engine"
	"kontor/store/internal/jobs"
)

const (
	// maxGroup and maxGroupTime bound what is committed together, so that the first job of a group does not wait for an
	// endless stream of others.
	maxGroup     = 512
	maxGroupTime = 20 * time.Millisecond
	// enoughJobs is the size from which a group does not wait for more jobs, once the syncer is idle.
	enoughJobs = 32
)

// commitGroup runs, in one transaction, the jobs to retry and then those that wait.
func (w *writer) commitGroup(first *job) {
	if first != nil {
		w.retries = append(w.retries, first)
	}
	w.progress.Begin(&w.progress.Writer)
	defer w.progress.End(&w.progress.Writer)
	if err := w.begin(); err != nil {
		w.rejectRetries(err)
		return
	}
	defer w.watches.end() // also after a panic
	w.useSavepoints = len(w.retries) > 1 || w.retries[0].Runs > 0
	begun := time.Now()
	intact := true
	for n := 0; intact && n < maxGroup; n++ {
		j := w.next(begun)
		if j == nil {
			break
		}
		intact = w.run(j)
	}
	if intact {
		w.commit()
	} else {
		w.retryGroup()
	}
}

// begin opens the transaction of a group.
func (w *writer) begin() error {
	if err := w.disk.err(); err != nil {
		return err
	}
	w.changed = w.conn.TotalChanged()
	w.touches.begin(w.position.commits)
	if err := runKept(w.conn, beginWrite); err != nil {
		return err
	}
	w.watches.begin()
	return nil
}

// next returns the job to run: one to retry, else one from the queue. It returns nil when the group is to be committed:
// when the syncer is idle and no job waits, or the group has enough jobs.
func (w *writer) next(begun time.Time) *job {
	if len(w.retries) > 0 {
		j := w.retries[0]
		w.retries = w.retries[1:]
		return j
	}
	if len(w.group) >= enoughJobs || time.Since(begun) > maxGroupTime {
		if w.syncerIdle() {
			return nil
		}
	}
	if j := w.nextWaiting(); j != nil {
		return j
	}
	runtime.Gosched() // callers who are about to write do so now: a quarter more writes a second, in fewer groups
	if j := w.nextWaiting(); j != nil || w.spare != nil {
		return j
	}
	select {
	case j := <-w.queue.Waiting:
		return j
	case w.spare = <-w.syncer.idle:
		return nil
	}
}

// nextWaiting returns a job from the queue, or nil if none waits.
func (w *writer) nextWaiting() *job {
	select {
	case j := <-w.queue.Waiting:
		return j
	default:
		return nil
	}
}

// syncerIdle reports whether a commit made now would be synced at once.
func (w *writer) syncerIdle() bool {
	if w.spare == nil {
		select {
		case w.spare = <-w.syncer.idle:
		default:
		}
	}
	return w.spare != nil
}

// rejectRetries answers the jobs whose transaction could not begin.
func (w *writer) rejectRetries(err error) {
	w.noteFailure(err)
	for _, j := range w.retries {
		if j.Reject() {
			w.answer(j, err)
		}
	}
	w.retries = nil
}

// commit commits the group and passes it to the syncer, which answers all of its callers. Failed jobs wait too: they may
// have read uncommitted rows of the group. Until then w.group holds the jobs, so that none is forgotten after a panic.
func (w *writer) commit() {
	if len(w.group) == 0 {
		if err := runKept(w.conn, rollback); err != nil {
			w.noteFailure(err)
		}
		return
	}
	next, err := w.recordPosition()
	if err == nil {
		if next.commits > w.position.commits {
			w.touches.publish(next.commits)
		}
		w.watches.committing()
		err = runKept(w.conn, commit)
	}
	if err != nil {
		w.touches.withdraw(w.position.commits + 1)
		w.undo()
		w.watches.end()
		err = w.disk.prefer(err)
		w.noteFailure(err)
		w.answerGroup(err)
		return
	}
	w.watches.end()
	if next.commits > w.position.commits {
		w.touches.done(next.commits)
		w.lineageSaved = true
	}
	w.position = next
	written := w.countGroup()
	w.versions.Bump(written)
	if f := w.onCommit; f != nil {
		w.onCommit = nil
		f()
	}
	w.passToSyncer(len(written) > 0)
	w.checkpoints.committed(w.conn)
}

// recordPosition writes, once for each group that has changed something, the signed head of the audit trail and the number
// of the commit. It returns the position after the commit.
func (w *writer) recordPosition() (position, error) {
	if err := w.guard.Seal(source{w.conn}); err != nil {
		return position{}, err
	}
	next := w.position
	if w.conn.TotalChanged() == w.changed {
		return next, nil
	}
	if end, known := w.guard.End(); known {
		next.head = end
	}
	if !w.lineageSaved {
		if err := w.lineage.save(w.conn); err != nil {
			return position{}, err
		}
	}
	next.commits, next.clean, next.at = next.commits+1, false, clock.Of(w.clock.Now())
	return next, putMeta(w.conn, engine.MetaCommits, signCommits(w.guard, next))
}

// countGroup counts the jobs of a committed group and returns the tables that they wrote to.
func (w *writer) countGroup() (written []*engine.Table) {
	for _, j := range w.group {
		if j.Err != nil {
			continue
		}
		w.counters.jobs.Add(1)
		for _, t := range j.tx.written {
			written = appendMissing(written, t)
		}
	}
	if len(written) > 0 {
		w.counters.commits.Add(1)
		w.counters.failing.Store(nil)
	}
	return written
}

// passToSyncer waits until the syncer is idle and passes the group to it.
func (w *writer) passToSyncer(wrote bool) {
	if w.spare == nil {
		w.spare = <-w.syncer.idle
	}
	done := w.group
	w.group, w.spare = w.spare, nil
	w.syncer.groups <- committed{jobs: done, wrote: wrote, position: w.position}
}

// retryGroup handles a transaction that was lost with a failed job: the other jobs run again.
func (w *writer) retryGroup() {
	group := w.group
	w.group = nil
	w.undo()
	for _, j := range group {
		if j.Runs >= jobs.MaxRuns {
			w.answer(j, fmt.Errorf("%w: the transaction was lost because others of its group failed", engine.ErrBusy))
			continue
		}
		w.retries = append(w.retries, j)
	}
}

// abandonGroup answers the jobs of the open group after the writer's goroutine ended.
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

// undo rolls the open transaction back, if there is one.
func (w *writer) undo() {
	w.guard.Forget()
	w.onCommit = nil
	if w.conn.InTransaction() {
		if err := runKept(w.conn, rollback); err != nil && w.disk.err() == nil {
			w.log.Error("rollback failed", "err", err)
		}
	}
}

// noteFailure remembers a failure of the storage, which makes the database unready. It ignores other failures.
func (w *writer) noteFailure(err error) {
	for _, kind := range []error{engine.ErrFull, engine.ErrIO, engine.ErrReadOnly, engine.ErrCorrupt} {
		if errors.Is(err, kind) {
			w.counters.failing.Store(&err)
			return
		}
	}
}

// answer lets the caller of a job continue, after the job's after-commit functions.
func (w *writer) answer(j *job, err error) { j.Answer(err, w.hooks) }
