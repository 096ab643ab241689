package notifications

import (
	"context"
	"fmt"
	"slices"
	"time"

	"kontor/modules/kit/outbox"
	"kontor/store"
)

// selectNodes returns the nodes that have leases or open streams.
const selectNodes = `
	SELECT leased_by FROM deliveries WHERE status = 'sending' AND leased_by <> ''
	UNION
	SELECT node_id FROM open_streams`

// goneTime is how long a node must be missing from the list of nodes.
const goneTime = 1500 * time.Millisecond

// ReleaseNodes releases what nodes have left that no longer use the database: the leases of their deliveries, and the number of
// their streams. It runs every few seconds on one node. A node counts as gone when it has been missing for some time, because a new
// one may be missing from the list for a moment.
func (s *Service) ReleaseNodes(ctx context.Context) error {
	if !s.db.Shared() {
		return nil
	}
	live := liveNodes(s.db)
	known, err := store.All(ctx, s.db, store.Text, selectNodes)
	if err != nil {
		return fmt.Errorf("read the nodes with leases: %w", err)
	}
	var gone []string
	missing := map[string]time.Time{}
	for _, node := range known {
		if slices.Contains(live, node) {
			continue
		}
		since, already := s.missing[node]
		if !already {
			since = time.Now()
		}
		if missing[node] = since; time.Since(since) >= goneTime {
			gone = append(gone, node)
		}
	}
	s.missing = missing
	if len(gone) == 0 {
		return nil
	}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		tx.AfterCommit(s.wakeUp)
		if err := outbox.Release(ctx, tx, deliveriesTable, "", gone...); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, deleteStreamsOfNodes+store.In(1, len(gone))+")", store.AppendIn(nil, gone)...)
		return err
	})
	if err != nil {
		return fmt.Errorf("release the leases of nodes: %w", err)
	}
	s.options.Log.Warn("released the deliveries and streams of nodes that are gone", "nodes", gone)
	return nil
}
