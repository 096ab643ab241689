package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kontor/store/engine"
	"kontor/store/internal/jobs"
)

const (
	// maxGroup and maxGroupTime bound what is committed together, so that the first job of a group does not wait for an
	// endless stream of others.
	maxGroup     = 512
	maxGroupTime = 20 * time.Millisecond

	// reconnectWait is how long a group waits for a connection, for example while the server restarts.
	reconnectWait = 3 * time.Second
	// reconnectPause is the time between two attempts.
	reconnectPause = 50 * time.Millisecond
)

// The statements that begin a group. Each statement sees what was committed before it began: those after the lock see all groups
// before.
const (
	beginWrite = "BEGIN"

	// lockWriters waits until no other group is open, on any node. The lock ends with the transaction. The numbers
	// are the engine's: "kontor", and 1 for the writers.
	lockWriters = "SELECT pg_advisory_xact_lock(1802465908, 1)"

	// selectOldest also returns the number of commits so far.
	selectOldest = `
		SELECT oldest, (SELECT number FROM kontor_versions WHERE name = '')
		FROM kontor_schema ORDER BY version DESC LIMIT 1`
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
	w.careful = len(w.retries) > 1 || w.retries[0].Runs > 0
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

// begin opens the transaction of a group. It connects if necessary, and again if the connection was lost while it was idle.
func (w *writer) begin() (err error) {
	w.guard.Forget()
	wait := reconnectWait
	if w.unreachable || w.queue.Closed() { // the callers have waited long enough
		wait = 0
	}
	for until := time.Now().Add(wait); ; time.Sleep(reconnectPause) {
		if err = w.connect(until); err == nil {
			if err = w.open(); err == nil {
				w.unreachable = false
				return nil
			}
			if w.conn.broken == nil {
				w.undo()
				return err
			}
		}
		if !time.Now().Before(until) {
			w.unreachable = true
			return err
		}
	}
}

// connect makes the connection of the writer, unless there is one.
func (w *writer) connect(until time.Time) error {
	if w.conn != nil && w.conn.broken == nil && w.conn.losses == w.e.losses.Load() {
		return nil
	}
	if w.conn != nil && w.conn.broken == nil {
		w.conn.close()
		w.conn = nil
	}
	ctx, cancel := context.WithDeadline(context.Background(), until.Add(time.Second))
	defer cancel()
	c, err := w.e.connectWriter(ctx)
	if err != nil {
		return err
	}
	w.conn = c
	return nil
}

// open begins the transaction, locks out other nodes and finds out whether this program may still write.
func (w *writer) open() error {
	c := w.conn
	oldest, err := c.prepareOwn(selectOldest)
	if err != nil {
		return err
	}
	end, err := c.prepareOwn(w.guard.EndStatement())
	if err != nil {
		return err
	}
	c.ask(beginWrite, nil)
	c.ask(lockWriters, nil)
	oldest.collect()
	end.collect()
	if err := c.roundTrip(); err != nil {
		return err
	}
	w.end = result{p: end.p, rows: end.kept}
	end.Close()
	defer oldest.Close()
	if err := cmp.Or(oldest.err, end.err); err != nil {
		return err
	}
	if found, err := oldest.next(); err != nil || !found || oldest.Int(0) > w.e.schema {
		return cmp.Or(err, fmt.Errorf("the schema has become newer than this program supports; install the present version: %w", engine.ErrNewerSchema))
	}
	w.commits = oldest.Int(1)
	return nil
}

// next returns the job to run: one to retry, else one from the queue. It returns nil when the group is to be committed.
func (w *writer) next(begun time.Time) *job {
	if len(w.retries) > 0 {
		j := w.retries[0]
		w.retries = w.retries[1:]
		return j
	}
	if time.Since(begun) > maxGroupTime {
		return nil
	}
	select {
	case j := <-w.queue.Waiting:
		return j
	default:
		return nil
	}
}

// rejectRetries answers the jobs whose transaction could not begin. While the server cannot be reached, those that wait are answered too.
func (w *writer) rejectRetries(err error) {
	w.noteFailure(err)
	err = translate(err)
	for waits := w.unreachable; waits; {
		select {
		case j := <-w.queue.Waiting:
			w.retries = append(w.retries, j)
		default:
			waits = false
		}
	}
	for _, j := range w.retries {
		if j.Reject() {
			j.Answer(err, w.hooks)
		}
	}
	w.retries = nil
}

// retryGroup undoes a transaction that was lost: its jobs run again.
func (w *writer) retryGroup() {
	group := w.group
	w.group = nil
	lost := failure{}
	if w.conn != nil {
		lost = w.conn.failed
	}
	stale := slices.ContainsFunc(group, func(j *job) bool { return isStale(j.Err) }) || isStale(lost.err)
	w.undo()
	if stale {
		w.conn.reset()
	} else if len(group) == 1 && group[0].Err != nil && lost.err == nil && w.conn.broken == nil {
		group[0].Answer(group[0].Err, w.hooks) // it has read nothing that is uncommitted
		return
	}
	retries := make([]*job, 0, len(group)+len(w.retries))
	for _, j := range group {
		if lost.owner == any(j) {
			j.immediate = true
		}
		if j.Runs >= jobs.MaxRuns {
			j.Answer(fmt.Errorf("%w: the transaction was lost, through others of its group or with the connection", engine.ErrBusy), w.hooks)
			continue
		}
		retries = append(retries, j)
	}
	w.retries = append(retries, w.retries...)
}

// abandonGroup answers the jobs of the open group after the writer's goroutine ended.
func (w *writer) abandonGroup(err error) {
	w.undo()
	w.answerGroup(err)
}

func (w *writer) answerGroup(err error) {
	for _, j := range w.group {
		if err == nil {
			j.Answer(j.Err, w.hooks)
		} else {
			j.Answer(err, w.hooks)
		}
	}
	clear(w.group)
	w.group = w.group[:0]
}

// undo rolls the open transaction back, if there is one.
func (w *writer) undo() {
	w.guard.Forget()
	c := w.conn
	if c == nil {
		return
	}
	c.closeStatements()
	c.active = nil
	if c.broken != nil {
		return
	}
	_ = c.exchange()
	if c.broken == nil && c.status != 'I' {
		c.ask(rollback, nil)
		_ = c.exchange()
	}
	c.failed = failure{}
	if c.status != 'I' {
		_ = c.lose(errors.New("a transaction could not be rolled back"))
	}
}
