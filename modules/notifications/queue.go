package notifications

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kontor/store"
)

const (
	// parallel is how many deliveries of a channel are on their way at the same time.
	parallel = 8
	// sendTime is how long a gateway may take for one, and leaseTime how long the lease holds: longer, so that nobody
	// takes over what is still being sent.
	sendTime  = 45 * time.Second
	leaseTime = 2 * time.Minute
	// pollPause is how long the queue sleeps when nobody wakes it.
	pollPause = time.Second
	// maxRetryAfter bounds what a gateway may ask for.
	maxRetryAfter = 24 * time.Hour
	// noteTries is how often the end of a delivery is noted before it is left to its lease.
	noteTries = 5
	notePause = 100 * time.Millisecond // and again as long each time
)

// queue brings the deliveries of one channel to its gateway. The table is the queue; what is here only works on it.
type queue struct {
	db      *store.DB
	options Options
	channel string
	gateway Gateway
	owner   string // of the leases

	wake    chan struct{}
	done    chan struct{}
	ended   chan struct{}
	running atomic.Bool
	moved   atomic.Int64 // when the queue last came round, by the store's clock

	attempts, failures, dead atomic.Uint64
}

func newQueue(db *store.DB, o Options, channel string, gateway Gateway, owner string) *queue {
	return &queue{db: db, options: o, channel: channel, gateway: gateway, owner: owner,
		wake: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{})}
}

func (q *queue) start() {
	if !q.running.Swap(true) {
		q.moved.Store(int64(q.db.Now()))
		go q.loop()
	}
}

// stop takes nothing new and waits for what is on its way, unless the context ends before.
func (q *queue) stop(ctx context.Context) {
	if !q.running.Swap(false) {
		return
	}
	close(q.done)
	select {
	case <-q.ended:
	case <-ctx.Done():
	}
}

// nudge wakes the queue. It does not wait.
func (q *queue) nudge() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *queue) loop() {
	defer close(q.ended)
	slots := make(chan struct{}, parallel)
	var sending sync.WaitGroup
	defer sending.Wait()
	poll := time.NewTicker(pollPause)
	defer poll.Stop()
	for {
		for {
			claimed, err := q.claim(parallel - len(slots))
			if err != nil && !errors.Is(err, store.ErrClosed) {
				q.options.Log.Warn("the queue cannot be read", "channel", q.channel, "cause", err)
			}
			for _, d := range claimed {
				slots <- struct{}{}
				sending.Go(func() {
					defer q.nudge()
					defer func() { <-slots }()
					q.deliver(d)
				})
			}
			if len(claimed) == 0 {
				break
			}
		}
		select {
		case <-q.done:
			return
		case <-q.wake:
		case <-poll.C:
		}
	}
}

// claim leases up to n deliveries that are due, each to be sent by nobody else while the lease holds.
func (q *queue) claim(n int) ([]Delivery, error) {
	select {
	case <-q.done:
		return nil, nil
	default:
	}
	if n <= 0 {
		return nil, nil
	}
	ctx := context.Background()
	if err := q.follow(ctx, store.Time(q.moved.Load())); err != nil {
		return nil, err
	}
	var any string
	err := q.db.QueryRow(ctx, selectDue, q.channel, q.db.Now(), 1).Scan(&any)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil // the usual case costs no write
	}
	if err != nil {
		return nil, err
	}
	var claimed []Delivery
	err = q.db.InTx(ctx, func(tx *store.Tx) error {
		claimed = claimed[:0]
		rows, err := tx.Query(ctx, claimDue, q.channel, tx.Now(), n, tx.Now().Add(leaseTime), q.owner)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			d, err := scanClaimed(rows)
			if err != nil {
				return err
			}
			claimed = append(claimed, d)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("claim deliveries: %w", err)
	}
	return claimed, nil
}

// errAbandoned is the end of a delivery that took the process down with it again and again.
var errAbandoned = errors.New("abandoned in all its attempts")

// deliver makes one attempt and notes how it ended.
func (q *queue) deliver(d Delivery) {
	if d.Attempts > q.options.MaxAttempts {
		q.note(d, Refusal{Permanent: true, Cause: errAbandoned})
		return
	}
	q.attempts.Add(1)
	ctx, cancel := context.WithTimeout(context.Background(), sendTime)
	err := q.send(ctx, d)
	cancel()
	if err == nil {
		q.finish(d, finishSent, q.db.Now())
		return
	}
	q.failures.Add(1)
	q.note(d, refusal(err))
}

// send calls the gateway. A panic there is a failed attempt of this delivery and of no other.
func (q *queue) send(ctx context.Context, d Delivery) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			q.options.Log.Error("panic while sending", "channel", q.channel, "delivery", d.ID, "cause", cause, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic while sending: %v", cause)
		}
	}()
	return q.gateway.Send(ctx, d)
}

// note writes down a failed attempt: when the next follows, or that none does.
func (q *queue) note(d Delivery, r Refusal) {
	status, next := Dead, (*store.Time)(nil)
	if !r.Permanent && d.Attempts < q.options.MaxAttempts {
		pause := max(q.pause(d.Attempts), min(r.RetryAfter, maxRetryAfter))
		at := q.db.Now().Add(pause)
		status, next = Retrying, &at
	}
	if status == Dead {
		q.dead.Add(1)
		q.options.Log.Warn("delivery given up", "channel", q.channel, "delivery", d.ID, "attempts", d.Attempts)
	}
	q.finish(d, finishFailed, status, shown(r.Cause), next)
}

// pause is how long to wait after the n-th failed attempt: twice as long each time, times a half to one, so that many
// that failed together do not come back together.
func (q *queue) pause(n int) time.Duration {
	pause := q.options.BasePause
	for ; n > 1 && pause < q.options.MaxPause; n-- {
		pause *= 2
	}
	pause = min(pause, q.options.MaxPause)
	return time.Duration(float64(pause) * (0.5 + rand.Float64()/2)) //nolint:gosec // jitter, not a secret
}

// finish notes the end of an attempt. If that cannot be written, the lease runs out and the delivery is sent again.
func (q *queue) finish(d Delivery, statement string, args ...any) {
	ctx := context.Background()
	var err error
	for try := range noteTries {
		err = q.db.InTx(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec(ctx, statement, append([]any{d.ID, q.owner, d.Attempts}, args...)...)
			return err
		})
		if err == nil || !store.Temporary(err) {
			break
		}
		<-time.After(time.Duration(try+1) * notePause)
	}
	if err != nil {
		q.options.Log.Error("the end of a delivery could not be noted", "channel", q.channel, "delivery", d.ID, "cause", err)
	}
}

const maxShownError = 300 // characters of a gateway's answer that administrators see

// shown is an error as it is stored.
func shown(err error) string {
	text := strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(err.Error(), "?"))
	if runes := []rune(text); len(runes) > maxShownError {
		return string(runes[:maxShownError])
	}
	return text
}
