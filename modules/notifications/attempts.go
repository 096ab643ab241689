package notifications

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"time"

	"kontor/store"
)

const (
	// maxRetryAfter bounds the pause that a gateway may request.
	maxRetryAfter = 24 * time.Hour
	// recordTries is how often the outcome of an attempt is written before its lease decides.
	recordTries = 5
	recordPause = 100 * time.Millisecond // after the first failed write; it grows by as much each time
)

// errAbandoned is the error of a delivery during whose attempts the process ended each time.
var errAbandoned = errors.New("abandoned in all its attempts")

// deliver makes one attempt and records its outcome.
func (q *queue) deliver(d Delivery) {
	if d.Attempts > q.options.MaxAttempts {
		q.recordFailure(d, SendError{Permanent: true, Cause: errAbandoned})
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), sendTime)
	defer cancel()
	if !q.keepsLease(ctx, cancel) {
		q.recordOutcome(d, giveBack, q.db.Now())
		return
	}
	q.attempts.Add(1)
	err := q.send(ctx, d)
	if err == nil {
		q.recordOutcome(d, finishSent, q.db.Now())
		return
	}
	q.failures.Add(1)
	q.recordFailure(d, sendErrorOf(err))
}

const (
	// leaseCheck is the time between two looks at whether this node still has the database.
	leaseCheck = 250 * time.Millisecond
	// maxWithout is how long an attempt continues without the database. Other nodes release the leases of this one later than
	// that: after the end of its lease and goneTime.
	maxWithout = 2 * time.Second
)

// keepsLease reports whether this node may begin an attempt, and cancels the attempt when it has lost the database for some time,
// because other nodes then release its leases. On a database of one process it always may.
func (q *queue) keepsLease(ctx context.Context, cancel context.CancelFunc) bool {
	if !q.db.Remembers() {
		return false
	}
	if !q.db.Shared() {
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
			if q.db.Remembers() {
				last = time.Now()
			}
		}
		cancel()
	}()
	return true
}

// send calls the gateway. A panic in the gateway is a failed attempt of this delivery and of no other.
func (q *queue) send(ctx context.Context, d Delivery) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			q.options.Log.Error("panic while sending", "channel", q.channel, "delivery", d.ID, "cause", cause, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic while sending: %v", cause)
		}
	}()
	return q.gateway.Send(ctx, d)
}

// recordFailure records a failed attempt, and when the next follows or that the delivery is dead.
func (q *queue) recordFailure(d Delivery, failure SendError) {
	status, next := Dead, (*store.Time)(nil)
	if !failure.Permanent && d.Attempts < q.options.MaxAttempts {
		pause := max(q.pause(d.Attempts), min(failure.RetryAfter, maxRetryAfter))
		at := q.db.Now().Add(pause)
		status, next = Retrying, &at
	}
	if status == Dead {
		q.dead.Add(1)
		q.options.Log.Warn("a delivery is dead", "channel", q.channel, "delivery", d.ID, "attempts", d.Attempts)
	}
	q.recordOutcome(d, finishFailed, status, storedError(failure.Cause), next)
}

// pause returns the pause after the n-th failed attempt. It doubles each time. A random factor of a half to one spreads
// deliveries that failed together.
func (q *queue) pause(n int) time.Duration {
	pause := q.options.BasePause
	for ; n > 1 && pause < q.options.MaxPause; n-- {
		pause *= 2
	}
	pause = min(pause, q.options.MaxPause)
	return time.Duration(float64(pause) * (0.5 + rand.Float64()/2)) //nolint:gosec // jitter, not a secret
}

// recordOutcome records the outcome of an attempt. If it cannot be written, the lease expires and the delivery is sent
// again.
func (q *queue) recordOutcome(d Delivery, statement string, args ...any) {
	ctx := context.Background()
	var err error
	for try := range recordTries {
		err = q.db.InTx(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec(ctx, statement, append([]any{d.ID, q.owner, d.Attempts}, args...)...)
			return err
		})
		if err == nil || !store.Temporary(err) {
			break
		}
		<-time.After(time.Duration(try+1) * recordPause)
	}
	if err != nil {
		q.options.Log.Error("could not record the outcome of a delivery", "channel", q.channel, "delivery", d.ID, "cause", err)
	}
}

const maxStoredError = 300 // characters of a gateway's answer that administrators see

// storedError returns the text of an error as it is stored: on one line, valid UTF-8 and bounded.
func storedError(err error) string {
	text := strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(err.Error(), "?"))
	text, _ = truncate(text, maxStoredError)
	return text
}
