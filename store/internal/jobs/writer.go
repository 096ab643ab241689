package jobs

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"kontor/store/engine"
	"kontor/store/query"
)

// maxGroup and MaxGroupTime bound what is committed together, so that the first job of a group does not wait for an endless
// stream of others.
const maxGroup = 512

// MaxGroupTime is how long jobs may join a group; see maxGroup.
const MaxGroupTime = 20 * time.Millisecond

// Groups is how an engine runs and commits the jobs of a group.
type Groups[J any] interface {
	// Begin opens the transaction of a group.
	Begin() error
	// Next returns a job of the queue for the group that was begun at a time, or false when the group is to be committed.
	Next(begun time.Time) (j J, ok bool)
	// Run runs a job. It reports whether the transaction is intact: it holds the writes of the jobs before, and none of a failed
	// job.
	Run(j J) (intact bool)
	// Commit commits the group and answers all of its callers.
	Commit()
	// Retry handles a transaction that was lost: its jobs run again.
	Retry()
	// Undo rolls the open transaction back, if there is one.
	Undo()
}

// A Writer runs the jobs of all callers of this process, one after another on one goroutine, and commits them in groups. J is
// a pointer to a type that embeds Job.
type Writer[J interface{ job() *Job }] struct {
	Log      *slog.Logger
	Queue    *Queue[J]
	Hooks    *Hooks
	Progress Progress
	Counters Counters
	// Unreachable is the error of a server that cannot be reached; nil: there is no server.
	Unreachable error

	Group         []J  // of the open transaction
	Retries       []J  // jobs whose transaction was lost; the next group begins with them
	UseSavepoints bool // for each job of the group

	groups    Groups[J]
	goroutine Goroutine
	ended     chan struct{} // closed when the last job is answered
}

// Counters count the engine's work.
type Counters struct {
	jobs, commits atomic.Uint64
	failing       atomic.Pointer[error] // of the storage; nil after a commit that succeeded
	Synced        Timing
}

// Timing counts how often something was done, and how long it took.
type Timing struct{ count, total, last atomic.Int64 }

// Add counts once more.
func (t *Timing) Add(d time.Duration) {
	t.count.Add(1)
	t.total.Add(int64(d))
	t.last.Store(int64(d))
}

// Read returns the counts.
func (t *Timing) Read() engine.Timing {
	return engine.Timing{Count: t.count.Load(), Total: time.Duration(t.total.Load()), Last: time.Duration(t.last.Load())}
}

// Init prepares a writer, before Start.
func (w *Writer[J]) Init(log *slog.Logger, groups Groups[J]) {
	w.Log, w.groups, w.Queue, w.ended = log, groups, NewQueue[J](), make(chan struct{})
	w.Progress.Start = time.Now()
}

// Start starts the goroutines of the writer. They end with Close, and those of the hooks with that of Hooks.
func (w *Writer[J]) Start() {
	w.Hooks = NewHooks(w.Log, &w.Progress)
	go w.goroutine.loop(w.serve, w.abandon, w.Log)
}

// Close waits until every accepted job is answered.
func (w *Writer[J]) Close() {
	w.Queue.Close()
	<-w.ended
}

// Write puts a job into the queue and waits for its outcome.
func (w *Writer[J]) Write(ctx context.Context, j J, fn func(engine.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch {
	case w.InJob():
		return fmt.Errorf("%w: a function of InTx called InTx", engine.ErrNested)
	case w.Hooks.goroutine.IsCurrent():
		return fmt.Errorf("%w: a function of AfterCommit called InTx", engine.ErrNested)
	}
	j.job().init(ctx, fn)
	if err := w.Queue.Add(j); err != nil {
		return err
	}
	return j.job().wait()
}

// InJob reports whether the calling goroutine runs a job.
func (w *Writer[J]) InJob() bool { return w.goroutine.IsCurrent() }

// RejectRead returns ErrNested within a job of the writer. The job would read the state before its own transaction, and while
// all readers are held by callers that wait for the writer, it would block the writer.
func (w *Writer[J]) RejectRead() error {
	if w.InJob() {
		return fmt.Errorf("%w: a function of InTx read without its transaction", engine.ErrNested)
	}
	return nil
}

// serve runs the next group. It reports false once the queue is closed and empty.
func (w *Writer[J]) serve() (more bool) {
	if len(w.Retries) == 0 {
		j, more := w.Queue.Next()
		if !more {
			close(w.ended)
			return false
		}
		w.Retries = append(w.Retries, j)
	}
	w.Progress.Begin(&w.Progress.Writer)
	defer w.Progress.End(&w.Progress.Writer)
	w.commitGroup()
	return true
}

// commitGroup runs, in one transaction, the jobs to retry and then those that wait.
func (w *Writer[J]) commitGroup() {
	if err := w.groups.Begin(); err != nil {
		w.rejectRetries(err)
		return
	}
	w.UseSavepoints = len(w.Retries) > 1 || w.Retries[0].job().Runs > 0
	begun := time.Now()
	for range maxGroup {
		j, ok := w.next(begun)
		if !ok {
			break
		}
		if !w.run(j) {
			w.groups.Retry()
			return
		}
	}
	w.groups.Commit()
}

// next returns the job to run: one to retry, else one from the queue.
func (w *Writer[J]) next(begun time.Time) (j J, ok bool) {
	if len(w.Retries) == 0 {
		return w.groups.Next(begun)
	}
	j = w.Retries[0]
	w.Retries = w.Retries[1:]
	return j, true
}

func (w *Writer[J]) run(j J) (intact bool) {
	if ok, err := j.job().begin(); !ok {
		if err != nil {
			w.Answer(j, err)
		}
		return true
	}
	defer j.job().ended()
	w.Group = append(w.Group, j)
	w.Progress.Begin(&w.Progress.Writer)
	return w.groups.Run(j)
}

// rejectRetries answers the jobs whose transaction could not begin.
func (w *Writer[J]) rejectRetries(err error) {
	for _, j := range w.Retries {
		if j.job().reject() {
			w.Answer(j, err)
		}
	}
	w.Retries = nil
}

// RunAgain makes the jobs of a group that was undone run again, before those that wait. Those that have run too often fail;
// cause says why the group was lost.
func (w *Writer[J]) RunAgain(group []J, cause string) {
	retries := make([]J, 0, len(group)+len(w.Retries))
	for _, j := range group {
		if j.job().Runs >= maxRuns {
			w.Answer(j, fmt.Errorf("%w: the transaction was lost%s", engine.ErrBusy, cause))
			continue
		}
		retries = append(retries, j)
	}
	w.Retries = append(retries, w.Retries...)
}

// abandon answers the jobs of the open group after the writer's goroutine ended.
func (w *Writer[J]) abandon(err error) {
	w.groups.Undo()
	w.AnswerGroup(err)
}

// Answer lets the caller of a job continue, after the job's after-commit functions.
func (w *Writer[J]) Answer(j J, err error) { j.job().answer(err, w.Hooks) }

// AnswerGroup answers all jobs of the group: with an error, or each with its own outcome.
func (w *Writer[J]) AnswerGroup(err error) {
	for _, j := range w.Group {
		if err == nil {
			w.Answer(j, j.job().Err)
		} else {
			w.Answer(j, err)
		}
	}
	clear(w.Group)
	w.Group = w.Group[:0]
}

// Succeeded returns the jobs of the group that did not fail.
func (w *Writer[J]) Succeeded() iter.Seq[J] {
	return func(yield func(J) bool) {
		for _, j := range w.Group {
			if j.job().Err == nil && !yield(j) {
				return
			}
		}
	}
}

// CountGroup counts the jobs of a committed group.
func (w *Writer[J]) CountGroup(wrote bool) {
	for range w.Succeeded() {
		w.Counters.jobs.Add(1)
	}
	if wrote {
		w.Counters.commits.Add(1)
		w.Counters.failing.Store(nil)
	}
}

// NoteFailure remembers a failure of the storage, which makes the database unready. It ignores other failures.
func (w *Writer[J]) NoteFailure(err error) {
	for _, kind := range []error{engine.ErrFull, engine.ErrIO, engine.ErrReadOnly, engine.ErrCorrupt, engine.ErrNewerSchema, w.Unreachable} {
		if err != nil && errors.Is(err, kind) {
			w.Counters.failing.Store(&err)
			return
		}
	}
}

// Stats returns the counts of the writer.
func (w *Writer[J]) Stats() engine.Stats {
	working, _ := w.Progress.Oldest()
	return engine.Stats{
		Writes:  w.Counters.jobs.Load(),
		Commits: w.Counters.commits.Load(),
		Refused: w.Queue.Refused(),
		Queued:  len(w.Queue.Waiting),
		Working: working,
		Stalled: working > StallAfter,
		Sync:    w.Counters.Synced.Read(),
	}
}

const (
	// readyWait is how long Ready waits for a read and for a write of its own. A probe that fails says more than one that does
	// not return.
	readyWait = 3 * time.Second
	// probeSize is the space that there must be: some hundred ordinary writes, so that readiness does not change with each small
	// write that still fits.
	probeSize = 256 << 10
)

// Ready reports whether a database can read and write, and whether writes make progress. permanent are failures that do not end.
func (w *Writer[J]) Ready(ctx context.Context, e engine.Engine, permanent ...*atomic.Pointer[error]) error {
	if err := w.Progress.Stalled(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	for _, failure := range permanent {
		if err := failure.Load(); err != nil {
			return *err
		}
	}
	var one int
	if err := query.NewRow(ctx, e, "SELECT 1", nil).Scan(&one); err != nil {
		return err
	}
	if w.Counters.failing.Load() == nil {
		return nil
	}
	err := probe(ctx, e)
	if errors.Is(err, engine.ErrBusy) && !errors.Is(err, w.Unreachable) {
		return nil // other jobs write
	}
	return err
}

// probe finds out whether a database whose last write failed can write again.
func probe(ctx context.Context, e engine.Engine) error {
	for _, value := range []string{strings.Repeat(" ", probeSize), ""} {
		err := e.Write(ctx, func(tx engine.Tx) error {
			_, err := query.Exec(ctx, tx, engine.UpsertMeta, []any{engine.MetaWriteProbe, value})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// A Tx is what the transactions of the engines share: the end of a run of a job, and its first error.
type Tx struct {
	Job   *Job
	Ended bool

	err error // of the first statement that failed
}

// Open returns an error if the transaction accepts no further statements.
func (t *Tx) Open() error {
	if t.Ended {
		return fmt.Errorf("transaction: %w", engine.ErrClosed)
	}
	if t.err != nil {
		return fmt.Errorf("transaction failed before: %w", t.err)
	}
	return nil
}

// Failed records the error of a statement: the transaction accepts no further ones.
func (t *Tx) Failed(err error) error {
	if err != nil && t.err == nil {
		t.err = err
	}
	return err
}

// Err returns the error of the first statement that failed.
func (t *Tx) Err() error { return t.err }

// AfterCommit registers a function to call after the commit.
func (t *Tx) AfterCommit(f func()) { t.Job.hooks = append(t.Job.hooks, f) }
