package notifications

import (
	"context"
	"math/rand/v2"
	"time"

	"kontor/modules/kit/outbox"
	"kontor/store"
)

const (
	// parallelSends is how many deliveries of a channel are sent at the same time.
	parallelSends = 8
	// sendTime is how long a gateway may take for one delivery.
	sendTime = 45 * time.Second
)

// queue sends the deliveries of one channel.
type queue = outbox.Outbox[Delivery]

// newQueue returns the queue of a channel. owner is that of the leases: the id of this node.
func (s *Service) newQueue(channel string, gateway Gateway, owner string) *queue {
	return outbox.New(outbox.Options[Delivery]{
		DB: s.db, Log: s.options.Log, Name: channel, Help: "deliveries." + channel,
		Table: deliveriesTable, Scope: "channel = '" + channel + "'", Due: selectDue, Columns: claimedColumns,
		Scan:  func(row store.Scanner) (Delivery, error) { return scanClaimed(row) },
		Owner: owner, Parallel: parallelSends, Timeout: sendTime,
		Send: func(ctx context.Context, d Delivery) error {
			if err := unseal(s.db, &d); err != nil {
				return err
			}
			return gateway.Send(ctx, d)
		},
		Round: func(ctx context.Context) (bool, error) {
			n, err := s.queues[channel].Claim(ctx, parallelSends, channel)
			return n > 0, err
		},
		Pause: s.pause, MaxPause: s.options.MaxPause, Record: s.recordAttempt,
	})
}

// Lease returns the id and the number of attempts, see [outbox.Row].
func (d Delivery) Lease() (id string, attempts int) { return d.ID, d.Attempts }

// pause returns the pause after the n-th failed attempt. It doubles each time. A random factor of a half to one spreads
// deliveries that failed together.
func (s *Service) pause(n int) (time.Duration, bool) {
	pause := s.options.BasePause
	for i := n; i > 1 && pause < s.options.MaxPause; i-- {
		pause *= 2
	}
	pause = min(pause, s.options.MaxPause)
	return time.Duration(float64(pause) * (0.5 + rand.Float64()/2)), n < s.options.MaxAttempts //nolint:gosec // jitter, not a secret
}

// recordAttempt stores an outcome. The gateway has the text of a delivery that was sent; only the fact is kept.
func (s *Service) recordAttempt(ctx context.Context, tx *store.Tx, d Delivery, o outbox.Outcome) (err error) {
	if o.Err == nil {
		_, err = s.queues[d.Channel].Finish(ctx, tx, d, setSent, tx.Now())
	} else {
		_, err = s.queues[d.Channel].Finish(ctx, tx, d, setFailed, o.Status, outbox.ErrorText(o.Err), o.Next)
	}
	return err
}
