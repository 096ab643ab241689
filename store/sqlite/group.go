package sqlite

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/internal/jobs"
	"kontor/store/sqlite/internal/binding"
)

// enoughJobs is the size from which a group does not wait for more jobs, once the syncer is idle.
const enoughJobs = 32

// Begin opens the transaction of a group.
func (w *writer) Begin() error {
	err := w.disk.err()
	if err == nil {
		w.changed = w.conn.TotalChanged()
		w.touches.begin(w.position.commits)
		err = runKept(w.conn, beginWrite)
	}
	if err != nil {
		w.NoteFailure(err)
		return err
	}
	w.watches.begin()
	return nil
}

// Next returns a job from the queue. The group is to be committed when the syncer is idle and no job waits, or the group has enough
// jobs.
func (w *writer) Next(begun time.Time) (*job, bool) {
	if len(w.Group) >= enoughJobs || time.Since(begun) > jobs.MaxGroupTime {
		if w.syncerIdle() {
			return nil, false
		}
	}
	if j, ok := w.Queue.Poll(); ok {
		return j, true
	}
	runtime.Gosched() // callers who are about to write do so now: a quarter more writes a second, in fewer groups
	if j, ok := w.Queue.Poll(); ok || w.spare != nil {
		return j, ok
	}
	select {
	case j := <-w.Queue.Waiting:
		return j, true
	case w.spare = <-w.syncer.idle:
		return nil, false
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

// Commit commits the group and passes it to the syncer, which answers all of its callers. Failed jobs wait too: they may
// have read uncommitted rows of the group. Until then w.Group holds the jobs, so that none is forgotten after a panic.
func (w *writer) Commit() {
	if len(w.Group) == 0 {
		w.NoteFailure(runKept(w.conn, rollback))
		w.watches.end()
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
		w.Undo()
		err = w.disk.prefer(err)
		w.NoteFailure(err)
		w.AnswerGroup(err)
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
	for j := range w.Succeeded() {
		written = addMissing(written, j.tx.written)
	}
	w.CountGroup(len(written) > 0)
	return written
}

// passToSyncer waits until the syncer is idle and passes the group to it.
func (w *writer) passToSyncer(wrote bool) {
	if w.spare == nil {
		w.spare = <-w.syncer.idle
	}
	done := w.Group
	w.Group, w.spare = w.spare, nil
	w.syncer.groups <- committed{jobs: done, wrote: wrote, position: w.position}
}

// Retry handles a transaction that was lost with a failed job: the other jobs run again.
func (w *writer) Retry() {
	group := w.Group
	w.Group = nil
	w.Undo()
	w.RunAgain(group, " because others of its group failed")
}

// Undo rolls the open transaction back, if there is one.
func (w *writer) Undo() {
	defer w.watches.end()
	w.guard.Forget()
	w.onCommit = nil
	w.conn.ResetAll()
	if w.conn.InTransaction() {
		if err := runKept(w.conn, rollback); err != nil && w.disk.err() == nil {
			w.Log.Error("rollback failed", "err", err)
		}
	}
}

// syncer makes commits durable beside the writer: while it syncs the log of one group, the writer runs the jobs of the
// next. No caller is answered before its write is synced.
type syncer struct {
	disk     *disk
	mark     *mark
	file     *os.File // the write-ahead log
	flush    func(*os.File) error
	answer   func(*job, error)
	synced   *jobs.Timing
	progress *jobs.Progress

	groups chan committed
	// idle holds an empty list for the next group while nothing is being synced.
	idle  chan []*job
	ended chan struct{}
}

// committed is a group whose commit is in the log.
type committed struct {
	jobs     []*job
	wrote    bool     // there is something to sync
	position position // after it
}

// openSyncer opens the log of a database. answer is called for each job of a group, in order.
func openSyncer(path string, disk *disk, mark *mark, synced *jobs.Timing, progress *jobs.Progress, answer func(*job, error)) (*syncer, error) {
	file, err := os.OpenFile(path+logSuffix, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	s := &syncer{
		disk: disk, mark: mark, file: file, flush: datadir.SyncFile, answer: answer, synced: synced, progress: progress,
		groups: make(chan committed), idle: make(chan []*job, 1), ended: make(chan struct{}),
	}
	s.idle <- make([]*job, 0, enoughJobs)
	go s.loop()
	return s, nil
}

func (s *syncer) loop() {
	defer close(s.ended)
	for group := range s.groups {
		err := s.sync(group)
		for _, j := range group.jobs {
			if err != nil {
				j.Err = err
			}
			s.answer(j, j.Err)
		}
		clear(group.jobs)
		s.idle <- group.jobs[:0]
	}
}

// sync syncs the log and records the position in the mark. After a failure, here or in a checkpoint in the meantime, no
// write is acknowledged; see [disk].
func (s *syncer) sync(group committed) error {
	if err := s.disk.err(); err != nil || !group.wrote {
		return err
	}
	begun := time.Now()
	s.progress.Begin(&s.progress.Syncer)
	err := s.flush(s.file)
	s.progress.End(&s.progress.Syncer)
	if err != nil {
		return s.disk.fail(fmt.Errorf("sync %s: %w", s.file.Name(), datadir.Cause(err)))
	}
	s.synced.Add(time.Since(begun))
	if err := s.mark.write(group.position); err != nil && !isFull(err) {
		return s.disk.fail(err)
	}
	return s.disk.err()
}

// logBytes returns the size of the log.
func (s *syncer) logBytes() int64 {
	info, err := s.file.Stat()
	if err != nil {
		return 0 // it was closed
	}
	return info.Size()
}

// close waits until every group is answered.
func (s *syncer) close() error {
	close(s.groups)
	<-s.ended
	return s.file.Close()
}

// disk ends the process when a write or a sync of a data file has failed.
//
// After such a failure the content of the disk is unknown: the system discards pages that it could not write, a second sync
// succeeds without them, and a checkpoint or a new log would make the damage permanent. So no file is changed any more, not
// even at exit, and no write is acknowledged. The next start reads what the disk has.
type disk struct {
	watch   binding.Watch
	failure atomic.Pointer[error]
	serving atomic.Bool // before that, the start fails with the error
	fatal   func(error)
}

func newDisk(fatal func(error)) *disk {
	d := &disk{fatal: fatal}
	if fatal == nil {
		d.fatal = exit
	}
	d.watch.Failed = func(err *binding.IOError) {
		if err.Op != binding.Read {
			_ = d.fail(err) // SQLite reports its own error to the caller
		}
	}
	return d
}

// fail stops all writing after a failed write or sync. It returns the error for callers that wait, when the process
// does not end.
func (d *disk) fail(cause error) error {
	d.watch.Stop()
	err := fmt.Errorf("%w: %w", engine.ErrIO, cause)
	if !d.failure.CompareAndSwap(nil, &err) {
		return *d.failure.Load()
	}
	if d.serving.Load() {
		d.fatal(err)
	}
	return err
}

// err returns the failure, or nil.
func (d *disk) err() error {
	if failure := d.failure.Load(); failure != nil {
		return *failure
	}
	return nil
}

// prefer returns the failure of the disk, if there is one, instead of an error that it caused.
func (d *disk) prefer(err error) error {
	if failure := d.err(); failure != nil && err != nil {
		return failure
	}
	return err
}

// exit prints one line and ends the process without running anything else.
func exit(err error) {
	fmt.Fprintf(os.Stderr, "kontor: %v\n", err)
	os.Exit(1)
}
