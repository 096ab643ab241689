package notifications

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"kontor/store"
)

const (
	// parallelSends is how many deliveries of a channel are sent at the same time.
	parallelSends = 8
	// sendTime is how long a gateway may take for one delivery. leaseTime is longer, so that a delivery that is still being
	// sent keeps its lease.
	sendTime  = 45 * time.Second
	leaseTime = 2 * time.Minute
	// pollInterval is how long the queue sleeps unless it is woken.
	pollInterval = time.Second
)

// queue sends the deliveries of one channel through its gateway. The queue itself is the table; this is its worker.
type queue struct {
	db      *store.DB
	options Options
	channel string
	gateway Gateway
	owner   string // of the leases: the id of this node
	busy    *store.Topic

	wake    chan struct{}
	done    chan struct{}
	ended   chan struct{}
	running atomic.Bool
	lastRun atomic.Int64 // when the queue last looked for deliveries, by the store's clock

	attempts, failures, dead atomic.Uint64
}

func newQueue(db *store.DB, o Options, channel string, gateway Gateway, owner string) *queue {
	q := &queue{db: db, options: o, channel: channel, gateway: gateway, owner: owner,
		wake: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{})}
	q.busy = db.Topic("deliveries."+channel, func(string) { q.wakeUp() })
	return q
}

func (q *queue) start() {
	if !q.running.Swap(true) {
		q.lastRun.Store(int64(q.db.Now()))
		go q.loop()
	}
}

// stop claims nothing more and waits for the deliveries that are being sent, until the context ends.
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

// wakeUp makes the queue look for deliveries. It does not wait.
func (q *queue) wakeUp() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *queue) loop() {
	defer close(q.ended)
	slots := make(chan struct{}, parallelSends)
	var sending sync.WaitGroup
	defer sending.Wait()
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		for q.sendDue(slots, &sending) {
			continue
		}
		select {
		case <-q.done:
			return
		case <-q.wake:
		case <-poll.C:
		}
	}
}

// sendDue claims deliveries for the free slots and starts to send them. It reports whether there were any.
func (q *queue) sendDue(slots chan struct{}, sending *sync.WaitGroup) bool {
	claimed, err := q.claim(parallelSends - len(slots))
	if err != nil && !errors.Is(err, store.ErrClosed) {
		q.options.Log.Warn("could not read the queue", "channel", q.channel, "cause", err)
	}
	for _, d := range claimed {
		slots <- struct{}{}
		sending.Go(func() {
			defer q.wakeUp()
			defer func() { <-slots }()
			q.deliver(d)
		})
	}
	return len(claimed) > 0
}

// claim leases up to n deliveries that are due.
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
	if err := q.followClock(ctx, store.Time(q.lastRun.Load())); err != nil {
		return nil, err
	}
	var id string
	err := q.db.QueryRow(ctx, selectDue, q.channel, q.db.Now(), 1).Scan(&id)
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
		if n == parallelSends && len(claimed) == n {
			tx.AnnounceSoon(q.busy, q.channel) // more may be due: other nodes help
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("claim deliveries: %w", err)
	}
	return claimed, nil
}
