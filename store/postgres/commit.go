package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kontor/store/engine"
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

// commit commits the group and answers all of its callers. Failed jobs have waited too: they may have read uncommitted rows
// of the group. Until then w.group holds the jobs, so that none is forgotten after a panic.
func (w *writer) commit() {
	if len(w.group) == 0 {
		w.undo()
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
		w.retryGroup()
		return
	}
	if err != nil {
		w.e.bus.Undone(announced)
		w.undo()
		err = translate(err)
		w.noteFailure(err)
		w.answerGroup(err)
		return
	}
	if w.marked {
		w.counters.synced.add(time.Since(begun))
		w.e.primaries.saw(w.commits + 1)
	}
	w.countGroup()
	if received := w.e.bus.Committed(announced); received != nil {
		for _, j := range w.group {
			if j.Err == nil && slices.ContainsFunc(j.tx.announcements, isStrict) {
				j.received = received
			}
		}
	}
	w.answerGroup(nil)
}

// announcements returns what the jobs of the group which did not fail have announced.
func (w *writer) announcements() (list []engine.Announcement) {
	for _, j := range w.group {
		if j.Err == nil {
			list = append(list, j.tx.announcements...)
		}
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
	for _, j := range w.group {
		if j.Err != nil {
			continue
		}
		for _, t := range j.tx.written {
			if !slices.Contains(written, t) {
				written = append(written, t)
			}
		}
	}
	slices.Sort(written) // so that the statements of all groups lock rows in one order
	return written
}

// countGroup counts the jobs of a committed group.
func (w *writer) countGroup() {
	for _, j := range w.group {
		if j.Err == nil {
			w.counters.jobs.Add(1)
		}
	}
	if w.marked {
		w.counters.commits.Add(1)
		w.counters.failing.Store(nil)
	}
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
			w.log.Error("it is not known whether a group of writes was committed", "err", err, "lost", cause)
			return fmt.Errorf("%w: %w", engine.ErrOutcomeUnknown, cause)
		}
	}
}

// readMark returns the number of the last group of this process that was committed, or 0.
func (w *writer) readMark() (found int64, err error) {
	defer w.undo()
	w.conn.ask(beginWrite, nil)
	w.conn.ask(lockWriters, nil)
	err = query.NewRow(context.Background(), own{conn: w.conn}, selectMark, []any{w.e.self.ID}).Scan(&found)
	if errors.Is(err, engine.ErrNotFound) {
		return 0, nil
	}
	return found, err
}

// noteFailure remembers a failure of the storage, which makes the database unready. It ignores other failures.
func (w *writer) noteFailure(err error) {
	for _, kind := range []error{engine.ErrFull, engine.ErrIO, engine.ErrReadOnly, engine.ErrCorrupt, engine.ErrNewerSchema, errUnreachable} {
		if errors.Is(err, kind) {
			w.counters.failing.Store(&err)
			return
		}
	}
}
