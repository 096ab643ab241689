package notifications

import (
	"context"
	"fmt"
	"sync/atomic"

	"kontor/store"
)

// timestamps returns the creation times of events. They never decrease within a database, even if the clock is set back or
// the process restarts, and ids grow within a process. Creation time and id therefore are the order of the commits, by
// which streams resume.
type timestamps struct{ last atomic.Int64 }

// next returns the creation time of an event that the transaction writes. Transactions run one after another, so the order
// of the times is that of the commits.
func (t *timestamps) next(ctx context.Context, tx *store.Tx) (store.Time, error) {
	last := store.Time(t.last.Load())
	if last == 0 {
		if err := tx.QueryRow(ctx, selectLatest).Scan(&last); err != nil {
			return 0, fmt.Errorf("read the latest notification: %w", err)
		}
		last++ // an id from before the restart may be greater than the next ones
	}
	now := max(tx.Now(), last)
	t.last.Store(int64(now))
	return now, nil
}
