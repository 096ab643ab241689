package notifications

import (
	"context"
	"fmt"
	"time"

	"kontor/store"
)

// clockSlack is how far the clock may go back without a correction: a delivery may wait for a second anyway.
const clockSlack = time.Second

const (
	// moveBack moves the times of the waiting deliveries of a channel back by $1.
	moveBack = `
	UPDATE deliveries
	SET next_attempt_at = next_attempt_at - $1, lease_until = lease_until - $1, version = version + 1
	WHERE channel = $2 AND status IN ('queued', 'retrying', 'sending')`

	// limitWaits makes deliveries due that would wait longer than the longest pause. After a restart it is unknown how far
	// the clock was set back.
	limitWaits = `
	UPDATE deliveries
	SET next_attempt_at = $1, version = version + 1
	WHERE channel = $2 AND (status = 'queued' AND next_attempt_at > $1 OR status = 'retrying' AND next_attempt_at > $3)`
)

// followClock records that the queue runs now. If the clock was set back since the last run, the times of waiting
// deliveries and of leases move back by as much. Otherwise they would wait until the old time comes again.
func (q *queue) followClock(ctx context.Context, last store.Time) error {
	now := q.db.Now()
	if back := last - now; back >= store.Time(clockSlack/time.Millisecond) {
		err := q.db.InTx(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec(ctx, moveBack, int64(back), q.channel)
			return err
		})
		if err != nil {
			return fmt.Errorf("move deliveries back with the clock: %w", err)
		}
	}
	q.lastRun.Store(int64(now))
	return nil
}
