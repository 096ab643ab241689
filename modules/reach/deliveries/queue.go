package deliveries

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"kontor/modules/kit/outbox"
	"kontor/modules/kit/types"
	"kontor/store"
)

// Prepare seals a delivery before the transaction that writes it, and returns what writes it.
func (s *Service) Prepare(d Delivery) func(ctx context.Context, tx *store.Tx) error {
	d.ID = store.NewID()
	var err error
	if d.Secret && s.seals() {
		err = s.seal(&d)
	}
	return func(ctx context.Context, tx *store.Tx) error {
		if err != nil {
			return err
		}
		return s.Enqueue(ctx, tx, []Delivery{d})
	}
}

// Enqueue writes deliveries in few statements. The caller sets recipient, channel and texts; Enqueue sets the rest.
func (s *Service) Enqueue(ctx context.Context, tx *store.Tx, deliveries []Delivery) error {
	now := tx.Now()
	for i := range deliveries {
		d := &deliveries[i]
		if d.CreatedAt = now; d.ID == "" {
			d.ID = store.NewID()
		}
		if err := s.sealIn(tx, d); err != nil {
			return err
		}
		if s.queues[d.Channel] == nil {
			d.Status, d.SentAt, d.Attempts = Sent, &now, 1 // Keeping it in the local outbox is the attempt.
		} else {
			d.Status, d.NextAttemptAt = outbox.Queued, &now
		}
	}
	if len(deliveries) > 0 {
		tx.AfterCommit(s.WakeUp)
	}
	for part := range store.Batches(deliveries) {
		args := make([]any, 0, deliveryArgs*len(part))
		for _, d := range part {
			args = append(args, d.ID, d.NotificationID, d.UserID, d.Channel, d.Recipient, types.Fold(d.Recipient),
				d.Subject, d.Text, d.HTML, d.sealed, d.Secret, d.Status, d.Attempts, d.NextAttemptAt, d.CreatedAt, d.SentAt)
		}
		if _, err := tx.Exec(ctx, insertDeliveriesStatement(len(part)), args...); err != nil {
			return fmt.Errorf("write to the outbox: %w", err)
		}
	}
	return nil
}

const deliveryArgs = 16

func insertDeliveriesStatement(n int) string {
	return `
	INSERT INTO deliveries (id, notification_id, user_id, channel, recipient, recipient_key, subject, text, html, sealed, secret,
		status, attempts, next_attempt_at, created_at, sent_at)
	VALUES ` + store.Values(n, deliveryArgs, 0)
}

const (
	// parallelSends is how many deliveries of a channel are sent at the same time.
	parallelSends = 8
	// sendTime is how long a gateway may take for one delivery.
	sendTime = 45 * time.Second
)

// newQueue returns the queue that sends the deliveries of a channel.
func (s *Service) newQueue(channel string, gateway Gateway) *outbox.Outbox[Delivery] {
	return outbox.New(outbox.Options[Delivery]{
		DB: s.db, Log: s.options.Log, Name: channel, Help: "deliveries." + channel,
		Table: tableName, Scope: "channel = '" + channel + "'", Due: selectDue, Columns: claimedColumns,
		Scan:  func(row store.Scanner) (Delivery, error) { return scanClaimed(row) },
		Owner: s.node, Parallel: parallelSends, Timeout: sendTime,
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

// selectDue selects the ids of at most $2 deliveries of a channel that are due at $1, or whose lease has expired then. Each state is read
// from the beginning of its own index.
const selectDue = `
	SELECT id FROM (
		SELECT * FROM (SELECT id, next_attempt_at AS at FROM deliveries
			WHERE channel = $3 AND status = 'queued' AND next_attempt_at <= $1 ORDER BY next_attempt_at, id LIMIT $2) AS fresh
		UNION ALL
		SELECT * FROM (SELECT id, next_attempt_at AS at FROM deliveries
			WHERE channel = $3 AND status = 'retrying' AND next_attempt_at <= $1 ORDER BY next_attempt_at, id LIMIT $2) AS failed
		UNION ALL
		SELECT * FROM (SELECT id, lease_until AS at FROM deliveries
			WHERE channel = $3 AND status = 'sending' AND lease_until <= $1 ORDER BY lease_until, id LIMIT $2) AS abandoned
	) AS due
	ORDER BY at, id
	LIMIT $2`

const (
	setSent = `status = 'sent', sent_at = $1, text = '', html = '', sealed = '', subject = CASE WHEN secret THEN '' ELSE subject END,
		last_error = NULL, next_attempt_at = NULL`

	setFailed = `status = $1, last_error = $2, next_attempt_at = $3`

	// Without a gateway the waiting deliveries of a channel stay in the local outbox.
	moveToLocalOutbox = `
	UPDATE deliveries
	SET status = 'sent', attempts = attempts + 1, sent_at = $1, next_attempt_at = NULL
	WHERE channel = $2 AND status IN ('queued', 'retrying')`

	retryDead = `
	UPDATE deliveries
	SET status = 'queued', attempts = 0, next_attempt_at = $2
	WHERE id = $1 AND status = 'dead'
	RETURNING ` + deliveryColumns

	retryDeadLocally = `
	UPDATE deliveries
	SET status = 'sent', attempts = 1, sent_at = $2, next_attempt_at = NULL
	WHERE id = $1 AND status = 'dead'
	RETURNING ` + deliveryColumns

	selectDelivery = `SELECT ` + deliveryColumns + ` FROM deliveries WHERE id = $1`

	countWaiting = `
	SELECT COUNT(*), COALESCE(MIN(created_at), 0) FROM deliveries
	WHERE channel = $1 AND status IN ('queued', 'retrying', 'sending')`

	countDead = `SELECT COUNT(*) FROM deliveries WHERE channel = $1 AND status = 'dead'`
)

// NextAttempt returns when the next delivery is tried after a time; nil: none is planned.
func (s *Service) NextAttempt(ctx context.Context, after store.Time) (next *store.Time, err error) {
	for _, q := range s.queues {
		at, err := q.Next(ctx, after)
		if err != nil {
			return nil, err
		}
		if at != nil && (next == nil || *at < *next) {
			next = at
		}
	}
	return next, nil
}

// Settle waits until what is due was tried.
func (s *Service) Settle(ctx context.Context) (err error) {
	for _, q := range s.queues {
		err = errors.Join(err, q.Settle(ctx))
	}
	return err
}

// WakeUp wakes all queues.
func (s *Service) WakeUp() {
	for _, q := range s.queues {
		q.WakeUp()
	}
}

// recover moves the deliveries of channels without a gateway to the local outbox, also those that an earlier process has leased.
// Leases of other nodes stay, see [Service.Release].
func (s *Service) recover(ctx context.Context) error {
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		var owners []string
		if s.db.Shared() {
			owners = append(owners, s.node)
		}
		for _, channel := range []string{Email, SMS} {
			if s.queues[channel] != nil {
				continue
			}
			if err := outbox.Release(ctx, tx, tableName, "channel = '"+channel+"'", owners...); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, moveToLocalOutbox, tx.Now(), channel); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("recover the outbox: %w", err)
	}
	return nil
}

// selectOwners returns the nodes that have leases.
const selectOwners = `SELECT DISTINCT leased_by FROM deliveries WHERE status = 'sending' AND leased_by <> ''`

// Owners returns the nodes that have leases.
func (s *Service) Owners(ctx context.Context) ([]string, error) {
	return store.All(ctx, s.db, store.Text, selectOwners)
}

// Release ends the leases of nodes that are gone: other nodes send their deliveries.
func (s *Service) Release(ctx context.Context, tx *store.Tx, nodes []string) error {
	tx.AfterCommit(s.WakeUp)
	return outbox.Release(ctx, tx, tableName, "", nodes...)
}
