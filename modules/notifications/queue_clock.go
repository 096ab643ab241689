package notifications

import (
	"context"
	"fmt"
	"time"

	"kontor/store"
)

// clockSlack is how far the clock may go back without anything being moved: a delivery waits for a second anyway.
const clockSlack = time.Second

const (
	// moveBack brings what waits on a channel along when the clock is set back, by as much.
	moveBack = `
	UPDATE deliveries
	SET next_attempt_at = next_attempt_at - $1, lease_until = lease_until - $1, version = version + 1
	WHERE channel = $2 AND status IN ('queued', 'retrying', 'sending')`

	// limitWaits brings back what would wait for longer than anything may: at the start nobody knows how far the clock
	// was set back meanwhile.
	limitWaits = `
	UPDATE deliveries
	SET next_attempt_at = $1, version = version + 1
	WHERE channel = $2 AND (status = 'queued' AND next_attempt_at > $1 OR status = 'retrying' AND next_attempt_at > $3)`
)

// follow notes that the queue comes round now. When the clock was set back since the last time, what waits moves back
// with it: else a message would wait, and a lease would hold, until the old time comes again.
func (q *queue) follow(ctx context.Context, last store.Time) error {
	now := q.db.Now()
	if back := last - now; back >= store.Time(clockSlack/time.Millisecond) {
		err := q.db.InTx(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec(ctx, moveBack, int64(back), q.channel)
			return err
		})
		if err != nil {
			return fmt.Errorf("follow the clock back: %w", err)
		}
	}
	q.moved.Store(int64(now))
	return nil
}
