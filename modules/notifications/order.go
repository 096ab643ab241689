package notifications

import (
	"context"
	"fmt"
	"sync/atomic"

	"kontor/store"
)

// order gives each notice its moment. Within one process ids grow, and moments never go back, not even when the clock of
// the machine does or after a restart: creation and id are the order in which copies were committed, and streams resume
// by it.
type order struct{ last atomic.Int64 }

// next is the moment of a notice that is written now. Closures run one after another, so that no two read the same
// last moment and commit the other way round.
func (o *order) next(ctx context.Context, tx *store.Tx) (store.Time, error) {
	last := store.Time(o.last.Load())
	if last == 0 {
		if err := tx.QueryRow(ctx, selectLatest).Scan(&last); err != nil {
			return 0, fmt.Errorf("read the latest notification: %w", err)
		}
		last++ // an id made before the restart may be larger than those to come
	}
	now := max(tx.Now(), last)
	o.last.Store(int64(now))
	return now, nil
}
