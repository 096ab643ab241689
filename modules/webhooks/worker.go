package webhooks

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"kontor/modules/kit/change"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

const (
	// parallel is the number of calls of one webhook at the same time; parallelAll of all webhooks.
	parallel    = 8
	parallelAll = 64
	// leaseTime is longer than the longest call, so that a delivery that is still being sent keeps its lease.
	leaseTime = 2 * time.Minute
	// pollInterval is the longest time that the worker sleeps unless it is woken: for attempts that become due. minInterval is the
	// shortest time between two rounds.
	pollInterval = time.Second
	minInterval  = 50 * time.Millisecond
	// step is the number of events that become deliveries in one transaction. maxOpen is the number of deliveries of a webhook that
	// wait; further events wait in the feed.
	step    = 100
	maxOpen = 1000
)

// worker turns events into deliveries and sends them.
type worker struct {
	s     *Service
	owner string // of leases

	wake    chan struct{}
	done    chan struct{}
	ended   chan struct{}
	running atomic.Bool
	slots   chan struct{}
	sending sync.WaitGroup

	mu     sync.Mutex
	active map[string]int // calls being made, by webhook
}

func newWorker(s *Service) *worker {
	return &worker{s: s, owner: store.NewID(), wake: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{}),
		slots: make(chan struct{}, parallelAll), active: map[string]int{}}
}

// One process uses a data directory, so every lease is stale when it starts.
const releaseLeases = `UPDATE webhook_deliveries SET lease_until = 0, leased_by = '', status = 'retrying' WHERE status = 'sending'`

func (w *worker) start(ctx context.Context) error {
	if !w.s.db.Shared() {
		err := w.s.db.InTx(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec(ctx, releaseLeases)
			return err
		})
		if err != nil {
			return fmt.Errorf("release the leases of webhooks: %w", err)
		}
	}
	if !w.running.Swap(true) {
		go w.loop()
	}
	return nil
}

func (w *worker) stop(ctx context.Context) {
	if !w.running.Swap(false) {
		return
	}
	close(w.done)
	select {
	case <-w.ended:
	case <-ctx.Done():
	}
}

// wakeUp makes the worker look for work. It does not wait.
func (w *worker) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *worker) loop() {
	defer close(w.ended)
	defer w.sending.Wait()
	for {
		changed := w.s.feed.Changed()
		found, err := w.round()
		if err != nil && !errors.Is(err, store.ErrClosed) {
			w.s.Log.Warn("could not deliver to webhooks", "cause", err)
		}
		if !found {
			changed = nil // no webhook follows the feed
		}
		if !w.pause(changed) {
			return
		}
	}
}

// pause waits for work. It reports false when the worker stops.
func (w *worker) pause(changed <-chan struct{}) bool {
	least := time.NewTimer(minInterval)
	defer least.Stop()
	select {
	case <-w.done:
		return false
	case <-least.C:
	}
	poll := time.NewTimer(min(pollInterval, w.s.feed.PollInterval()))
	defer poll.Stop()
	select {
	case <-w.done:
		return false
	case <-w.wake:
	case <-changed:
	case <-poll.C:
	}
	return true
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

// round does what is due of all webhooks. It reports whether one of them follows the feed. On a shared database one node at a time
// does it. Cursors and leases make it safe that two do for a moment.
func (w *worker) round() (following bool, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	if !w.s.db.Leads() || !w.s.db.Remembers() {
		return false, nil
	}
	ctx := context.Background()
	states, err := store.All(ctx, w.s.db, scanState, selectStates)
	if err != nil {
		return true, fmt.Errorf("read the webhooks: %w", err)
	}
	var failed []error
	for _, st := range states {
		if st.Status == active {
			following = true
			if st.open < maxOpen {
				n, err := w.s.dispatch(ctx, st)
				if failed = append(failed, err); n == step {
					w.wakeUp()
				}
				st.open += n
			}
		}
		if st.open > 0 {
			failed = append(failed, w.sendDue(ctx, st))
		}
	}
	return following, errors.Join(failed...)
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
	if err != nil || last == after {
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
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, moveCursor, st.ID, st.cursor, first.ID())
		return err
	})
}

const (
	// A delivery waits until all earlier ones of the same record are finished. Without a webhook in force, only tests are sent.
	selectDue = `
		SELECT d.id FROM webhook_deliveries d
		WHERE d.webhook_id = $1 AND d.next_attempt_at <= $2 AND d.lease_until <= $2 AND ($3 OR d.rec_id = '')
			AND (d.rec_id = '' OR NOT EXISTS (
				SELECT 1 FROM webhook_deliveries e
				WHERE e.webhook_id = d.webhook_id AND e.rec_id = d.rec_id AND e.rec_type = d.rec_type AND e.rec_version < d.rec_version
					AND e.next_attempt_at IS NOT NULL))
		ORDER BY d.rec_version, d.id
		LIMIT $4`

	claim = `
		UPDATE webhook_deliveries SET status = 'sending', attempts = attempts + 1, lease_until = $5, leased_by = $6
		WHERE id IN (` + selectDue + `)
		RETURNING ` + deliveryColumns
)

// sendDue claims due deliveries of a webhook and starts to send them.
func (w *worker) sendDue(ctx context.Context, st state) error {
	now := w.s.db.Now()
	n := w.free(st)
	if n <= 0 || st.Status == active && now < st.notBefore {
		return nil
	}
	inForce := st.Status == active
	due, err := store.All(ctx, w.s.db, store.Text, selectDue, st.ID, now, inForce, 1)
	if err != nil || len(due) == 0 {
		return err // the usual case costs no write
	}
	var claimed []Delivery
	err = w.s.db.InTx(ctx, func(tx *store.Tx) error {
		claimed, err = store.All(ctx, tx, scanClaimed, claim, st.ID, tx.Now(), inForce, n, tx.Now().Add(leaseTime), w.owner)
		return err
	})
	if err != nil {
		return fmt.Errorf("claim deliveries: %w", err)
	}
	for _, d := range claimed {
		w.begin(st.ID, 1)
		w.slots <- struct{}{}
		w.sending.Go(func() {
			defer w.wakeUp()
			defer func() {
				<-w.slots
				w.begin(st.ID, -1)
			}()
			w.s.deliver(st.Webhook, d, w.owner)
		})
	}
	return nil
}

func scanClaimed(row store.Scanner) (Delivery, error) { return scanDelivery(row) }

// free returns how many calls of a webhook may begin. While it fails, one at a time tries whether it works again.
func (w *worker) free(st state) int {
	most := parallel
	if st.failures >= probeAfter {
		most = 1
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return min(most-w.active[st.ID], parallelAll-len(w.slots))
}

func (w *worker) begin(id string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.active[id] += n; w.active[id] == 0 {
		delete(w.active, id)
	}
}
