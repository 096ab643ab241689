// Package outbox sends what transactions have left in a table: at least once, with leases, repetitions and dead letters.
//
// The table is the queue, so that a change and what it sends are committed together. A module owns the table and decides what is due, what
// an attempt is, and what is stored of its outcome. The package leases due rows, makes the attempts at the same time, decides whether
// another one follows, and records the outcome only if the lease still holds. The columns status, attempts, next_attempt_at, lease_until
// and leased_by are its own.
//
// A crash between an attempt and its record repeats the attempt, when its lease has expired or was released. A row whose attempts end the
// process each time becomes a dead letter, too. When the clock is set back, waiting rows and leases move back with it.
package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"kontor/store"
)

// The states of a row. A module may have others for rows that are finished.
const (
	Queued   = "queued"   // waiting for the first attempt
	Sending  = "sending"  // leased
	Retrying = "retrying" // an attempt failed, another follows
	Dead     = "dead"     // not tried again by itself
)

const (
	// LeaseTime is longer than any attempt, so that a row that is still being sent keeps its lease.
	LeaseTime = 2 * time.Minute
	// MaxRetryAfter bounds the pause that a receiver may ask for.
	MaxRetryAfter = 24 * time.Hour

	// pollInterval is how long the worker sleeps unless it is woken.
	pollInterval = time.Second
	// clockSlack is how far the clock may go back without a correction: a row may wait for a second anyway.
	clockSlack = time.Second
	// recordTries is how often the outcome of an attempt is written before its lease decides.
	recordTries = 5
	recordPause = 100 * time.Millisecond // after the first failed write; it grows by as much each time
)

// Row is a row of the table.
type Row interface {
	// Lease returns the id of the row and the number of its attempts, with the present one.
	Lease() (id string, attempts int)
}

// Options declare an outbox.
type Options[R Row] struct {
	DB   *store.DB
	Log  *slog.Logger
	Name string // in the log

	Table string
	Scope string // condition of the rows, if the table has others, too
	// Due is a SELECT of the ids of rows that are due at $1, or whose lease has expired then; at most $2, the next first.
	Due string
	// Columns are what Scan reads of a leased row.
	Columns string
	Scan    func(row store.Scanner) (R, error)

	Owner    string        // of the leases
	Parallel int           // attempts at the same time
	Timeout  time.Duration // of an attempt; shorter than LeaseTime
	// Help makes other nodes look for rows when this one is busy. It is a topic of the store; empty: one node sends.
	Help string

	// Send makes one attempt. An error that is not an [*Error] may be followed by another one; [ErrLeft] leaves the row to its lease,
	// and [ErrNotBegun] gives it back.
	Send func(ctx context.Context, r R) error
	// Pause returns the pause after the n-th failed attempt; false: there is no further one.
	Pause func(n int) (time.Duration, bool)
	// MaxPause is the longest that Pause returns.
	MaxPause time.Duration
	// Record stores an outcome with [Outbox.Finish], in the transaction that ends the lease.
	Record func(ctx context.Context, tx *store.Tx, r R, o Outcome) error

	// Round calls Claim for what is due. It reports whether there may be more at once.
	Round func(ctx context.Context) (more bool, err error)
	// Changed returns what wakes the worker besides WakeUp; nil: nothing does. It is asked before each round.
	Changed func() <-chan struct{}
	// Least is the shortest time between two rounds.
	Least time.Duration
	// Poll returns how long the worker sleeps at most; nil: a second.
	Poll func() time.Duration

	// Began and Ended are called for each claimed row, before its attempt and after the outcome was recorded; nil: nothing is.
	Began, Ended func(r R)
}

// Error is an error of an attempt that says how to go on.
type Error struct {
	Permanent  bool          // another attempt would fail, too
	RetryAfter time.Duration // before the next attempt; zero if the receiver does not say
	Cause      error
}

// Error returns the text of the cause.
func (e *Error) Error() string { return e.Cause.Error() }

// Unwrap returns the cause, for errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Cause }

// ErrNotBegun is the error of an attempt that sent nothing, because it may not be sent at the moment. The row is due again at once, and the
// attempt is not counted: the sender that returns it must prevent the next claim until that has changed.
var ErrNotBegun = errors.New("the attempt has not begun")

// ErrLeft is the error of an attempt without an outcome: the row is sent again when its lease has expired.
var ErrLeft = errors.New("the attempt has no outcome")

// errAbandoned is the error of a row during whose attempts the process ended each time.
var errAbandoned = errors.New("abandoned in all its attempts")

// Outcome is what came of an attempt.
type Outcome struct {
	Err    error       // nil: it succeeded
	Status string      // Retrying or Dead after an error
	Next   *store.Time // the next attempt; nil: none
	Took   time.Duration
}

// Outbox sends the rows of a table. Create one with [New].
type Outbox[R Row] struct {
	o    Options[R]
	help *store.Topic

	wake    chan struct{}
	done    chan struct{}
	ended   chan struct{}
	running atomic.Bool
	slots   chan struct{}
	sending sync.WaitGroup
	lastRun atomic.Int64 // when it last looked for rows, by the store's clock

	claims, attempts, failures, dead atomic.Uint64

	hurry chan struct{} // ends the shortest time between two rounds
	mu    sync.Mutex
	asked []chan struct{} // by Settle, in their order
}

// New returns an outbox. Nothing is sent before Start.
func New[R Row](o Options[R]) *Outbox[R] {
	b := &Outbox[R]{o: o, wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{}), slots: make(chan struct{}, o.Parallel)}
	if o.Help != "" {
		b.help = o.DB.Topic(o.Help, func(string) { b.WakeUp() })
	}
	return b
}

// Start recovers the rows of an earlier process and begins to send.
func (b *Outbox[R]) Start(ctx context.Context) error {
	if err := b.recover(ctx); err != nil {
		return fmt.Errorf("recover the outbox of %s: %w", b.o.Name, err)
	}
	if !b.running.Swap(true) {
		b.lastRun.Store(int64(b.o.DB.Now()))
		go b.loop()
	}
	return nil
}

// Stop claims nothing more and waits for the attempts that are being made, until the context ends.
func (b *Outbox[R]) Stop(ctx context.Context) {
	if !b.running.Swap(false) {
		return
	}
	close(b.done)
	select {
	case <-b.ended:
	case <-ctx.Done():
	}
}

// WakeUp makes the worker look for rows. It does not wait.
func (b *Outbox[R]) WakeUp() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Counts returns the attempts, the failed ones, and the rows that became dead letters since the start.
func (b *Outbox[R]) Counts() (attempts, failures, dead uint64) {
	return b.attempts.Load(), b.failures.Load(), b.dead.Load()
}

// LastRun returns when the worker last looked for rows.
func (b *Outbox[R]) LastRun() store.Time { return store.Time(b.lastRun.Load()) }

// Free returns how many further attempts can begin now.
func (b *Outbox[R]) Free() int { return b.o.Parallel - len(b.slots) }

func (b *Outbox[R]) loop() {
	defer close(b.ended)
	defer b.sending.Wait()
	for {
		var changed <-chan struct{}
		if b.o.Changed != nil {
			changed = b.o.Changed()
		}
		more, err := b.settled(b.round)
		if err != nil && !errors.Is(err, store.ErrClosed) {
			b.o.Log.Warn("could not send what is due", "outbox", b.o.Name, "cause", err)
		}
		if !b.pause(changed, more) {
			return
		}
	}
}

// round claims what is due. A panic ends the round and nothing else.
func (b *Outbox[R]) round() (more bool, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	return b.o.Round(context.Background())
}

// pause waits for work. It reports false when the worker stops.
func (b *Outbox[R]) pause(changed <-chan struct{}, more bool) bool {
	if !b.sleep(b.o.Least, b.hurry, nil) {
		return false
	}
	if more {
		return true
	}
	poll := pollInterval
	if b.o.Poll != nil {
		poll = min(poll, b.o.Poll())
	}
	return b.sleep(poll, b.wake, changed)
}

// sleep waits for a time, unless it is woken. It reports false when the worker stops.
func (b *Outbox[R]) sleep(d time.Duration, wake, changed <-chan struct{}) bool {
	if d <= 0 {
		return !b.stopping()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-b.done:
		return false
	case <-wake:
	case <-changed:
	case <-timer.C:
	}
	return true
}

func (b *Outbox[R]) stopping() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// Claim leases up to n rows that are due, as far as attempts are free, and begins their attempts. args are the further arguments of Due,
// from $3 on. It returns the number of rows.
func (b *Outbox[R]) Claim(ctx context.Context, n int, args ...any) (int, error) {
	if n = min(n, b.Free()); n <= 0 || b.stopping() {
		return 0, nil
	}
	if err := b.followClock(ctx); err != nil {
		return 0, err
	}
	due, err := store.All(ctx, b.o.DB, store.Text, b.o.Due, append([]any{b.o.DB.Now(), 1}, args...)...)
	if err != nil || len(due) == 0 {
		return 0, err // the usual case costs no write
	}
	lease := strconv.Itoa(len(args) + 3)
	owner := strconv.Itoa(len(args) + 4)
	statement := `UPDATE ` + b.o.Table + ` SET status = 'sending', attempts = attempts + 1, lease_until = $` + lease + `, leased_by = $` + owner +
		` WHERE id IN (` + b.o.Due + `) RETURNING ` + b.o.Columns
	var claimed []R
	err = b.o.DB.InTx(ctx, func(tx *store.Tx) (err error) {
		all := append(append([]any{tx.Now(), n}, args...), tx.Now().Add(LeaseTime), b.o.Owner)
		if claimed, err = store.All(ctx, tx, b.o.Scan, statement, all...); err == nil && b.help != nil && n == b.o.Parallel && len(claimed) == n {
			tx.AnnounceSoon(b.help, b.o.Name) // more may be due: other nodes help
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("claim rows of %s: %w", b.o.Table, err)
	}
	b.claims.Add(uint64(len(claimed)))
	for _, r := range claimed {
		if b.o.Began != nil {
			b.o.Began(r)
		}
		b.slots <- struct{}{}
		b.sending.Go(func() {
			defer b.WakeUp()
			defer func() {
				<-b.slots
				if b.o.Ended != nil {
					b.o.Ended(r)
				}
			}()
			b.attempt(r)
		})
	}
	return len(claimed), nil
}

// placeholder is a parameter of a statement.
var placeholder = regexp.MustCompile(`\$(\d+)`)

// Finish ends the lease of a row and sets columns, whose values are $1 to $n in set. It reports false, and changes nothing, if the lease
// has expired and another attempt took over.
func (b *Outbox[R]) Finish(ctx context.Context, tx *store.Tx, r R, set string, args ...any) (bool, error) {
	const leased = 3 // arguments of the lease
	set = placeholder.ReplaceAllStringFunc(set, func(p string) string {
		n, _ := strconv.Atoi(p[1:]) // the expression matches digits only
		return "$" + strconv.Itoa(n+leased)
	})
	id, attempts := r.Lease()
	changed, err := tx.Exec(ctx, `UPDATE `+b.o.Table+` SET lease_until = 0, leased_by = '', `+set+
		` WHERE id = $1 AND status = 'sending' AND leased_by = $2 AND attempts = $3`, append([]any{id, b.o.Owner, attempts}, args...)...)
	return changed > 0, err
}

// update returns the beginning of a statement that changes rows of a table in a scope.
func update(table, scope, set string) string {
	if scope != "" {
		scope += " AND "
	}
	return `UPDATE ` + table + ` SET ` + set + ` WHERE ` + scope
}

// Release ends the leases of owners on rows of a table, which become due. Without owners it ends all leases.
func Release(ctx context.Context, tx *store.Tx, table, scope string, owners ...string) error {
	sql := update(table, scope, `status = 'retrying', next_attempt_at = $1, lease_until = 0, leased_by = ''`) + `status = 'sending'`
	args := []any{tx.Now()}
	if len(owners) > 0 {
		sql += ` AND leased_by IN (` + store.In(2, len(owners)) + `)`
		args = store.AppendIn(args, owners)
	}
	_, err := tx.Exec(ctx, sql, args...)
	return err
}

// recover makes rows due that an earlier process has left: its leases, which are stale unless other nodes use the database, and rows that
// would wait longer than the longest pause. After a restart it is unknown how far the clock was set back.
func (b *Outbox[R]) recover(ctx context.Context) error {
	return b.o.DB.InTx(ctx, func(tx *store.Tx) error {
		var owners []string
		if b.o.DB.Shared() {
			owners = append(owners, b.o.Owner)
		}
		if err := Release(ctx, tx, b.o.Table, b.o.Scope, owners...); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, update(b.o.Table, b.o.Scope, `next_attempt_at = $1`)+
			`(status = 'queued' AND next_attempt_at > $1 OR status = 'retrying' AND next_attempt_at > $2)`,
			tx.Now(), tx.Now().Add(max(MaxRetryAfter, b.o.MaxPause)))
		return err
	})
}

// followClock records that the worker runs now. If the clock was set back since the last run, waiting rows and leases move back by as
// much. Otherwise they would wait until the old time comes again. Each node moves its leases, and the leader moves what waits.
func (b *Outbox[R]) followClock(ctx context.Context) error {
	now := b.o.DB.Now()
	if back := b.LastRun() - now; back >= store.Time(clockSlack/time.Millisecond) {
		err := b.o.DB.InTx(ctx, func(tx *store.Tx) error {
			const move = `next_attempt_at = next_attempt_at - $1, lease_until = lease_until - $1`
			_, err := tx.Exec(ctx, update(b.o.Table, b.o.Scope, move)+`status = 'sending' AND leased_by = $2`, int64(back), b.o.Owner)
			if err == nil && b.o.DB.Leads() {
				_, err = tx.Exec(ctx, update(b.o.Table, b.o.Scope, move)+`status IN ('queued', 'retrying')`, int64(back))
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("move rows of %s back with the clock: %w", b.o.Table, err)
		}
	}
	b.lastRun.Store(int64(now))
	return nil
}

// ThisNode returns the id of this node, which is different for each start.
func ThisNode(db *store.DB) string {
	for _, n := range db.Nodes() {
		if n.Self {
			return n.ID
		}
	}
	return store.NewID()
}
