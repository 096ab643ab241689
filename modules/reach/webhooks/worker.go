package webhooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"kontor/modules/kit/change"
	"kontor/modules/kit/outbox"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

const (
	// parallel is the number of calls of one webhook at the same time; parallelAll of all webhooks.
	parallel    = 8
	parallelAll = 64
	// callTime is the longest time of a call, with what is read for it.
	callTime = time.Minute
	// minInterval is the shortest time between two rounds.
	minInterval = 50 * time.Millisecond
	// step is the number of events that become deliveries in one transaction. maxOpen is the number of deliveries of a webhook that
	// wait; further events wait in the feed.
	step    = 100
	maxOpen = 1000
)

// worker turns events into deliveries and sends them.
type worker struct {
	s         *Service
	outbox    *outbox.Outbox[*call]
	following bool // a webhook follows the feed; of the loop

	mu     sync.Mutex
	active map[string]int // calls being made, by webhook
}

func newWorker(s *Service) *worker {
	w := &worker{s: s, active: map[string]int{}, following: true}
	w.outbox = outbox.New(outbox.Options[*call]{
		DB: s.db, Log: s.Log, Name: "webhooks", Table: "webhook_deliveries", Due: selectDue, Columns: deliveryColumns, Scan: scanCall,
		Owner: store.NewID(), Parallel: parallelAll, Timeout: callTime,
		Send: s.send, Pause: s.pause, MaxPause: 2 * slices.Max(append([]time.Duration{0}, s.Pauses...)), Record: s.record,
		Round: w.round, Changed: w.changed, Least: minInterval, Poll: s.feed.PollInterval,
		Began: func(c *call) { w.count(c.WebhookID, 1) }, Ended: func(c *call) { w.count(c.WebhookID, -1) },
	})
	return w
}

// changed returns what wakes the worker for new events, if a webhook follows the feed.
func (w *worker) changed() <-chan struct{} {
	if !w.following {
		return nil
	}
	return w.s.feed.Changed()
}

// state is a webhook with how far it has come.
type state struct {
	Webhook

	cursor    string
	failures  int64
	notBefore store.Time
	open      int // deliveries that wait
}

const selectStates = `
	SELECT ` + columns + `, g.cursor, g.failures, g.not_before,
		(SELECT COUNT(*) FROM webhook_deliveries d WHERE d.webhook_id = webhooks.id AND d.next_attempt_at IS NOT NULL)
	FROM webhooks JOIN webhook_progress g ON g.webhook_id = webhooks.id
	ORDER BY id`

// appended reads further columns after those of a scanner.
type appended struct {
	store.Scanner
	more []any
}

// Scan reads a row.
func (a appended) Scan(dest ...any) error { return a.Scanner.Scan(append(dest, a.more...)...) }

func scanState(row store.Scanner) (state, error) {
	var st state
	var err error
	st.Webhook, err = scan(appended{row, []any{&st.cursor, &st.failures, &st.notBefore, &st.open}})
	return st, err
}

// round does what is due of all webhooks. It reports whether there are further events. On a shared database one node at a time does it.
// Cursors and leases make it safe that two do for a moment.
func (w *worker) round(ctx context.Context) (more bool, err error) {
	if w.s.TermsDue() { // the entry about the right that begins or ends wakes the worker
		return false, nil
	}
	if w.following = false; !w.s.db.Leads() || !w.s.db.Remembers() {
		return false, nil
	}
	w.following = true
	states, err := store.All(ctx, w.s.db, scanState, selectStates)
	if err != nil {
		return false, fmt.Errorf("read the webhooks: %w", err)
	}
	w.following = false
	var failed []error
	for _, st := range states {
		if st.Status == active {
			w.following = true
			if st.open < maxOpen {
				n, err := w.s.dispatch(ctx, st)
				failed, more = append(failed, err), more || n == step
				st.open += n
			}
		}
		if st.open > 0 {
			failed = append(failed, w.sendDue(ctx, st))
		}
	}
	return more, errors.Join(failed...)
}

// dispatch turns the next events of a webhook into deliveries, and returns how many there were.
func (s *Service) dispatch(ctx context.Context, st state) (int, error) {
	caller, ok, err := s.accounts.CallerOf(ctx, s.db, st.AccountID)
	if err != nil || !ok {
		return 0, err // the events wait until the account is active again
	}
	caller = caller.WithPolicy(s.Policy.Load())
	if !s.feed.MayFollow(caller) {
		return 0, nil
	}
	after, known := change.ParsePosition(st.cursor)
	if !known {
		after = change.Position{} // the cursor before the first event
	}
	events, last, err := s.feed.After(access.With(ctx, caller), after, st.Types, step)
	if errors.Is(err, apierr.CursorExpired) {
		return 0, s.skipExpired(ctx, st)
	}
	if err != nil || last == after || s.TermsDue() { // it may have become due since the rights were read
		return 0, err
	}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		moved, err := tx.Exec(ctx, moveCursor, st.ID, st.cursor, last.ID())
		if err != nil || moved == 0 {
			return err // deleted, or moved by a replay or another node
		}
		for _, e := range events {
			if _, err := queue(ctx, tx, st.ID, e); err != nil {
				return err
			}
		}
		return nil
	})
	return len(events), err
}

// skipExpired moves the cursor of a webhook to the first event that is kept.
func (s *Service) skipExpired(ctx context.Context, st state) error {
	first, err := s.feed.Earliest(ctx)
	if err != nil {
		return err
	}
	s.Log.Warn("events for a webhook are no longer kept; it continues with the first that is", "webhook", st.ID)
	return s.db.InTx(ctx, func(tx *store.Tx) error { return tx.Run(ctx, moveCursor, st.ID, st.cursor, first.ID()) })
}

// A delivery waits until all earlier ones of the same record are finished. Without a webhook in force, only tests are sent.
const selectDue = `
	SELECT d.id FROM webhook_deliveries d
	WHERE d.webhook_id = $3 AND d.next_attempt_at <= $1 AND d.lease_until <= $1 AND ($4 OR d.rec_id = '')
		AND (d.rec_id = '' OR NOT EXISTS (
			SELECT 1 FROM webhook_deliveries e
			WHERE e.webhook_id = d.webhook_id AND e.rec_id = d.rec_id AND e.rec_type = d.rec_type AND e.rec_version < d.rec_version
				AND e.next_attempt_at IS NOT NULL))
	ORDER BY d.rec_version, d.id
	LIMIT $2`

// sendDue begins to send due deliveries of a webhook. While it fails, one at a time tries whether it works again.
func (w *worker) sendDue(ctx context.Context, st state) error {
	inForce := st.Status == active
	if inForce && w.s.db.Now() < st.notBefore {
		return nil
	}
	most := parallel
	if st.failures >= probeAfter {
		most = 1
	}
	w.mu.Lock()
	free := most - w.active[st.ID]
	w.mu.Unlock()
	_, err := w.outbox.Claim(ctx, free, st.ID, inForce)
	return err
}

func (w *worker) count(id string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.active[id] += n; w.active[id] == 0 {
		delete(w.active, id)
	}
}
