package outbox

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"kontor/store"
)

const (
	// leaseCheck is the time between two looks at whether this node still has the database.
	leaseCheck = 250 * time.Millisecond
	// maxWithout is how long an attempt continues without the database. Other nodes release the leases of this one later than that.
	maxWithout = 2 * time.Second
)

// attempt makes one attempt and records its outcome.
func (b *Outbox[R]) attempt(r R) {
	id, attempts := r.Lease()
	if attempts > 1 {
		if _, further := b.o.Pause(attempts - 1); !further {
			b.recordFailure(r, &Error{Permanent: true, Cause: errAbandoned}, 0)
			return
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), b.o.Timeout)
	defer cancel()
	if !b.keepsLease(ctx, cancel) {
		b.giveBack(r)
		return
	}
	began := time.Now()
	err := b.send(ctx, r)
	took := time.Since(began)
	if errors.Is(err, ErrNotBegun) {
		b.giveBack(r)
		return
	}
	b.attempts.Add(1)
	switch {
	case errors.Is(err, ErrLeft):
	case err == nil:
		b.record(id, func(ctx context.Context, tx *store.Tx) error { return b.o.Record(ctx, tx, r, Outcome{Took: took}) })
	default:
		b.failures.Add(1)
		b.recordFailure(r, err, took)
	}
}

// giveBack makes a row due again whose attempt has not begun.
func (b *Outbox[R]) giveBack(r R) {
	id, _ := r.Lease()
	b.record(id, func(ctx context.Context, tx *store.Tx) error {
		_, err := b.Finish(ctx, tx, r, "status = 'retrying', attempts = attempts - 1, next_attempt_at = $1", tx.Now())
		return err
	})
}

// keepsLease reports whether this node may begin an attempt, and cancels the attempt when it has lost the database for some time,
// because other nodes then release its leases. On a database of one process it always may.
func (b *Outbox[R]) keepsLease(ctx context.Context, cancel context.CancelFunc) bool {
	if !b.o.DB.Remembers() {
		return false
	}
	if !b.o.DB.Shared() {
		return true
	}
	go func() {
		check := time.NewTicker(leaseCheck)
		defer check.Stop()
		for last := time.Now(); time.Since(last) < maxWithout; {
			select {
			case <-ctx.Done():
				return
			case <-check.C:
			}
			if b.o.DB.Remembers() {
				last = time.Now()
			}
		}
		cancel()
	}()
	return true
}

// send makes an attempt. A panic is a failed attempt of this row and of no other.
func (b *Outbox[R]) send(ctx context.Context, r R) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			id, _ := r.Lease()
			b.o.Log.Error("panic while sending", "outbox", b.o.Name, "delivery", id, "cause", cause, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic while sending: %v", cause)
		}
	}()
	return b.o.Send(ctx, r)
}

// recordFailure records a failed attempt, and when the next follows or that the row is a dead letter.
func (b *Outbox[R]) recordFailure(r R, err error, took time.Duration) {
	failure, ok := errors.AsType[*Error](err)
	if !ok {
		failure = &Error{Cause: err}
	}
	id, attempts := r.Lease()
	pause, further := b.o.Pause(attempts)
	o := Outcome{Err: err, Status: Dead, Took: took}
	if further && !failure.Permanent {
		at := b.o.DB.Now().Add(max(pause, min(failure.RetryAfter, MaxRetryAfter)))
		o.Status, o.Next = Retrying, &at
	} else {
		b.dead.Add(1)
		b.o.Log.Warn("a delivery is dead", "outbox", b.o.Name, "delivery", id, "attempts", attempts)
	}
	b.record(id, func(ctx context.Context, tx *store.Tx) error { return b.o.Record(ctx, tx, r, o) })
}

// record writes an outcome. If it cannot be written, the lease expires and the row is sent again.
func (b *Outbox[R]) record(id string, write func(ctx context.Context, tx *store.Tx) error) {
	ctx := context.Background()
	var err error
	for try := range recordTries {
		err = b.o.DB.InTx(ctx, func(tx *store.Tx) error { return write(ctx, tx) })
		if err == nil || !store.Temporary(err) {
			break
		}
		<-time.After(time.Duration(try+1) * recordPause)
	}
	if err != nil {
		b.o.Log.Error("could not record the outcome of an attempt", "outbox", b.o.Name, "delivery", id, "cause", err)
	}
}

const maxStoredError = 300 // characters of an answer that administrators see

// ErrorText returns the text of an error as it is stored: on one line, valid UTF-8 and bounded.
func ErrorText(err error) string {
	text := []rune(strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(err.Error(), "?")))
	return string(text[:min(len(text), maxStoredError)])
}

// Next returns when the next attempt follows after a time; nil: none is planned.
func (b *Outbox[R]) Next(ctx context.Context, after store.Time) (next *store.Time, err error) {
	scope := b.o.Scope
	if scope != "" {
		scope += " AND "
	}
	err = b.o.DB.QueryRow(ctx, `SELECT MIN(next_attempt_at) FROM `+b.o.Table+` WHERE `+scope+`status IN ('queued', 'retrying') AND next_attempt_at > $1`, after).Scan(&next)
	if err != nil {
		return nil, fmt.Errorf("read the next attempt of %s: %w", b.o.Table, err)
	}
	return next, nil
}

// Settle waits until everything was attempted that was due when it was called: until a round that began since then has found nothing
// to do, and no attempt is being made. It returns at once if the worker does not run.
func (b *Outbox[R]) Settle(ctx context.Context) error {
	if !b.running.Load() {
		return nil
	}
	asked := make(chan struct{})
	b.mu.Lock()
	b.asked = append(b.asked, asked)
	b.mu.Unlock()
	b.WakeUp()
	select {
	case b.hurry <- struct{}{}:
	default:
	}
	select {
	case <-asked:
	case <-b.ended:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// settled runs a round, and answers those calls of Settle that came before it if it had nothing to do.
func (b *Outbox[R]) settled(round func() (more bool, err error)) (more bool, err error) {
	b.mu.Lock()
	waiting := len(b.asked)
	b.mu.Unlock()
	claims := b.claims.Load()
	more, err = round()
	idle := !more && claims == b.claims.Load() && len(b.slots) == 0
	if waiting == 0 || !idle && err == nil { // a failed round is not waited for: the next may fail, too
		return more, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, asked := range b.asked[:waiting] {
		close(asked)
	}
	b.asked = b.asked[waiting:]
	return more, err
}
