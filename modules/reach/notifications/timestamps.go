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
//
// Ids of two nodes have no order. So on a database that several nodes share, the events of a group of commits are later than
// all events before the group: by a millisecond at least.
type timestamps struct {
	last   atomic.Int64
	recall atomic.Uint64 // the value of Tx.Recall for which last is valid on a shared database
}

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

// selectLatestShared also returns the time of a deleted event, which streams may have reached, and that of a database that was
// copied from one without the row.
const selectLatestShared = `
	SELECT MAX(at) FROM (
		SELECT latest AS at FROM notice_clock
		UNION ALL
		SELECT COALESCE(MAX(created_at), 0) AS at FROM notifications WHERE deleted = FALSE
	) AS moments`

const upsertLatest = `
	INSERT INTO notice_clock (id, latest) VALUES (1, $1)
	ON CONFLICT (id) DO UPDATE SET latest = excluded.latest`

// nextShared is next on a database that several nodes share. The latest time is read once for each group of commits.
func (t *timestamps) nextShared(ctx context.Context, tx *store.Tx) (store.Time, error) {
	last, recall := store.Time(t.last.Load()), tx.Recall()
	if last == 0 || t.recall.Load() != recall {
		if err := tx.QueryRow(ctx, selectLatestShared).Scan(&last); err != nil {
			return 0, fmt.Errorf("read the latest notification: %w", err)
		}
		last++ // another node may have used the time
	}
	now := max(tx.Now(), last)
	if _, err := tx.Exec(ctx, upsertLatest, now); err != nil {
		return 0, fmt.Errorf("write the time of the latest notification: %w", err)
	}
	t.last.Store(int64(now))
	t.recall.Store(recall)
	return now, nil
}
