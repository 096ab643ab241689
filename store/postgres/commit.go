package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kontor/store/engine"
	"kontor/store/internal/jobs"
	"kontor/store/postgres/internal/bus"
	"kontor/store/query"
)

// resolveWait is how long the writer tries to find out whether a commit happened whose answer was lost.
const resolveWait = 20 * time.Second

// The statements that end a group.
const (
	commit = "COMMIT"

	raiseVersions = `
		WITH counted AS (UPDATE kontor_versions SET number = number + 1 WHERE name = '' RETURNING number)
		INSERT INTO kontor_versions (name, number)
		SELECT t.name, counted.number FROM counted, unnest(string_to_array($1, ',')) AS t (name)
		ON CONFLICT (name) DO UPDATE SET number = excluded.number`

	upsertMark = `
		INSERT INTO kontor_marks (node, number, at) VALUES ($1, $2, now())
		ON CONFLICT (node) DO UPDATE SET number = excluded.number, at = excluded.at`

	notify = `SELECT pg_notify($1, $2)`

	selectMark = `SELECT number FROM kontor_marks WHERE node = $1`
)

// Commit commits the group and answers all of its callers. Failed jobs have waited too: they may have read uncommitted rows
// of the group. Until then w.Group holds the jobs, so that none is forgotten after a panic.
func (w *writer) Commit() {
	if len(w.Group) == 0 {
		w.Undo()
		return
	}
	written := w.writtenTables()
	begun := time.Now()
	announced := w.e.bus.Prepare(w.announcements())
	err := w.record(written, announced)
	if err == nil {
		w.conn.ask(commit, nil)
		err = w.conn.exchange()
	}
	lost := w.conn.failed
	switch {
	case w.conn.broken != nil:
		err = w.resolve()
	case err == nil && lost.err != nil:
		if j, ok := lost.owner.(*job); ok {
			j.immediate = true
			err = errNotCommitted
			break
		}
		err = lost.err
	}
	if errors.Is(err, errNotCommitted) {
		w.e.bus.Undone(announced)
		w.Retry()
		return
	}
	if err != nil {
		w.e.bus.Undone(announced)
		w.Undo()
		err = translate(err)
		w.NoteFailure(err)
		w.AnswerGroup(err)
		return
	}
	if w.marked {
		w.Counters.Synced.Add(time.Since(begun))
		w.e.primaries.saw(w.commits + 1)
	}
	w.CountGroup(w.marked)
	if received := w.e.bus.Committed(announced); received != nil {
		for j := range w.Succeeded() {
			if slices.ContainsFunc(j.tx.announcements, isStrict) {
				j.received = received
			}
		}
	}
	w.AnswerGroup(nil)
}

// announcements returns what the jobs of the group which did not fail have announced.
func (w *writer) announcements() (list []engine.Announcement) {
	for j := range w.Succeeded() {
		list = append(list, j.tx.announcements...)
	}
	return list
}

func isStrict(a engine.Announcement) bool { return a.Delivery == engine.Strict }

// record collects what belongs to each commit that writes or announces: the signed head of the audit trail, the versions of the
// tables, the mark, and the notifications.
func (w *writer) record(written []string, announced *bus.Group) error {
	w.marked = false
	sealed := w.conn.position()
	if err := w.guard.Seal(own{conn: w.conn}); err != nil {
		return err
	}
	if len(written) == 0 && announced == nil && w.conn.position() == sealed {
		return nil
	}
	ctx, o := context.Background(), own{conn: w.conn, later: true}
	if _, err := query.Exec(ctx, o, raiseVersions, []any{strings.Join(written, ",")}); err != nil {
		return err
	}
	w.mark++
	w.marked = true
	if _, err := query.Exec(ctx, o, upsertMark, []any{w.e.self.ID, w.mark}); err != nil {
		return err
	}
	if announced == nil {
		return nil
	}
	for _, payload := range announced.Payloads() {
		if _, err := query.Exec(ctx, o, notify, []any{w.e.bus.Channel(), payload}); err != nil {
			return err
		}
	}
	return nil
}

// writtenTables returns the tables that the jobs of the group which did not fail have written to.
func (w *writer) writtenTables() (written []string) {
	for j := range w.Succeeded() {
		written = append(written, j.tx.written...)
	}
	slices.Sort(written) // so that the statements of all groups lock rows in one order
	return slices.Compact(written)
}

// errNotCommitted means that a transaction was lost with its connection.
var errNotCommitted = errors.New("not committed")

// resolve finds out, on a new connection, whether the group was committed although its answer was lost. Once it has the lock of the
// writers, the lost transaction has ended; its mark says how.
func (w *writer) resolve() error {
	if !w.marked {
		return errNotCommitted // nothing is lost
	}
	cause := w.conn.broken
	for until := time.Now().Add(resolveWait); ; time.Sleep(reconnectPause) {
		err := w.connect(until)
		if err == nil {
			var found int64
			if found, err = w.readMark(); err == nil {
				if found == w.mark {
					return nil
				}
				return errNotCommitted
			}
		}
		if time.Now().After(until) {
			w.Log.Error("it is not known whether a group of writes was committed", "err", err, "lost", cause)
			return fmt.Errorf("%w: %w", engine.ErrOutcomeUnknown, cause)
		}
	}
}

// readMark returns the number of the last group of this process that was committed, or 0.
func (w *writer) readMark() (found int64, err error) {
	defer w.Undo()
	w.conn.ask(beginWrite, nil)
	w.conn.ask(lockWriters, nil)
	err = query.NewRow(context.Background(), own{conn: w.conn}, selectMark, []any{w.e.self.ID}).Scan(&found)
	if errors.Is(err, engine.ErrNotFound) {
		return 0, nil
	}
	return found, err
}

const (
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

// Begin opens the transaction of a group. While the server cannot be reached, the jobs that wait are answered too.
func (w *writer) Begin() error {
	err := w.begin()
	w.NoteFailure(err)
	for waits := w.unreachable; waits; {
		var j *job
		if j, waits = w.Queue.Poll(); waits {
			w.Retries = append(w.Retries, j)
		}
	}
	return translate(err)
}

// begin connects if necessary, and again if the connection was lost while it was idle.
func (w *writer) begin() (err error) {
	w.guard.Forget()
	wait := reconnectWait
	if w.unreachable || w.Queue.Closed() { // the callers have waited long enough
		wait = 0
	}
	for until := time.Now().Add(wait); ; time.Sleep(reconnectPause) {
		if err = w.connect(until); err == nil {
			if err = w.open(); err == nil {
				w.unreachable = false
				return nil
			}
			if w.conn.broken == nil {
				w.Undo()
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
	if w.e.primaries.behind(w.commits) {
		w.e.replaceConnections()
		return errRestored
	}
	return nil
}

// errRestored is the error of the first write after a restore under a running node. The next connection finds out what is missing.
var errRestored = fmt.Errorf("%w: the database has fewer commits than this node has seen", engine.ErrBusy)

// Next returns a job from the queue, unless none waits or the group has taken long.
func (w *writer) Next(begun time.Time) (*job, bool) {
	if time.Since(begun) > jobs.MaxGroupTime {
		return nil, false
	}
	return w.Queue.Poll()
}

// Retry undoes a transaction that was lost: its jobs run again.
func (w *writer) Retry() {
	group := w.Group
	w.Group = nil
	lost := failure{}
	if w.conn != nil {
		lost = w.conn.failed
	}
	stale := slices.ContainsFunc(group, func(j *job) bool { return isStale(j.Err) }) || isStale(lost.err)
	w.Undo()
	if stale {
		w.conn.reset()
	} else if len(group) == 1 && group[0].Err != nil && lost.err == nil && w.conn.broken == nil {
		w.Answer(group[0], group[0].Err) // it has read nothing that is uncommitted
		return
	}
	if j, ok := lost.owner.(*job); ok {
		j.immediate = true
	}
	w.RunAgain(group, ", through others of its group or with the connection")
}

// Undo rolls the open transaction back, if there is one.
func (w *writer) Undo() {
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
