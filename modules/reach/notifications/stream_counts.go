package notifications

import (
	"context"
	"fmt"
	"sync"
	"time"

	"kontor/server/sse"
	"kontor/store"
)

// streamCounts keeps in the database how many streams each user has open on this node, so that the limit of a user holds over all
// nodes. On a database of one process the hub alone counts, and nothing is stored.
//
// The count over all nodes is exact when a stream opens, because transactions run one after another. It includes streams that have
// ended within the last milliseconds, and those of a killed node for some seconds, until [Service.ReleaseNodes] deletes its counts.
type streamCounts struct {
	service *Service
	node    string // id

	mu      sync.Mutex
	changed map[string]struct{} // users whose stored count may be too high
	running bool
	closed  bool
	idle    sync.WaitGroup // done when no goroutine writes
}

const (
	sumOtherStreams = `SELECT CAST(COALESCE(SUM(streams), 0) AS BIGINT) FROM open_streams WHERE user_id = $1 AND node_id <> $2`

	upsertStreams = `
	INSERT INTO open_streams (user_id, node_id, streams) VALUES ($1, $2, $3)
	ON CONFLICT (user_id, node_id) DO UPDATE SET streams = excluded.streams`

	deleteStreams = `DELETE FROM open_streams WHERE user_id = $1 AND node_id = $2`

	deleteStreamsOfNode = `DELETE FROM open_streams WHERE node_id = $1`

	// It is followed by ids of nodes and a closing bracket.
	deleteStreamsOfNodes = `DELETE FROM open_streams WHERE node_id IN (`

	selectStreamUsers = `SELECT DISTINCT user_id FROM open_streams`
)

const (
	countBatch = 128 // users in one transaction
	countPause = 200 * time.Millisecond
	countTime  = 5 * time.Second
)

// admit counts a stream that the hub has opened, before anything is written to it. It returns sse.ErrTooMany if the user has too
// many on all nodes together.
func (c *streamCounts) admit(stream *sse.Stream) error {
	if !c.service.db.Shared() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), countTime) // not the request's, which may have an idempotency key
	defer cancel()
	user, limit := stream.User, int64(c.service.options.ConnectionsPerUser)
	return c.service.db.InTx(ctx, func(tx *store.Tx) error {
		var others int64
		if err := tx.QueryRow(ctx, sumOtherStreams, user, c.node).Scan(&others); err != nil {
			return fmt.Errorf("count the streams of a user: %w", err)
		}
		own := int64(c.service.hub.Count(user))
		if own+others > limit {
			return sse.ErrTooMany
		}
		_, err := tx.Exec(ctx, upsertStreams, user, c.node, own)
		return err
	})
}

// liveNodes returns the ids of the nodes with a lease, and that of this node.
func liveNodes(db *store.DB) []string {
	var ids []string
	for _, n := range db.Nodes() {
		if n.Live || n.Self {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

// thisNode returns the id of this node, which is different for each start.
func thisNode(db *store.DB) string {
	for _, n := range db.Nodes() {
		if n.Self {
			return n.ID
		}
	}
	return store.NewID()
}

// ended stores the count of a user whose stream has ended, in the background.
func (c *streamCounts) ended(user string) {
	if !c.service.db.Shared() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.changed[user] = struct{}{}
	if !c.running {
		c.running = true
		c.idle.Go(c.run)
	}
}

// run stores changed counts until none remain.
func (c *streamCounts) run() {
	for {
		users, ok := c.take()
		if !ok {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), countTime)
		err := c.store(ctx, users)
		cancel()
		if err != nil {
			c.service.options.Log.Warn("could not store how many streams users have", "cause", err)
			c.putBack(users)
			<-time.After(countPause)
		}
	}
}

func (c *streamCounts) take() (users []string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for user := range c.changed {
		if len(users) == countBatch {
			break
		}
		users = append(users, user)
		delete(c.changed, user)
	}
	c.running = len(users) > 0 && !c.closed
	return users, c.running
}

func (c *streamCounts) putBack(users []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, user := range users {
		c.changed[user] = struct{}{}
	}
}

// store stores the counts that the hub has now.
func (c *streamCounts) store(ctx context.Context, users []string) error {
	return c.service.db.InTx(ctx, func(tx *store.Tx) error {
		for _, user := range users {
			statement, args := deleteStreams, []any{user, c.node}
			if n := c.service.hub.Count(user); n > 0 {
				statement, args = upsertStreams, append(args, int64(n))
			}
			if _, err := tx.Exec(ctx, statement, args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// close deletes the counts of this node. Call it when the streams have ended.
func (c *streamCounts) close(ctx context.Context) {
	c.mu.Lock()
	already := c.closed
	c.closed = true
	c.mu.Unlock()
	c.idle.Wait()
	if already || !c.service.db.Shared() {
		return
	}
	err := c.service.db.InTx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, deleteStreamsOfNode, c.node)
		return err
	})
	if err != nil { // another node deletes them when the lease of this one has ended
		c.service.options.Log.Warn("could not delete the number of open streams", "cause", err)
	}
}

// usersOfAllNodes returns the users with an open stream on any node, and for some seconds those of a node that was killed.
func (c *streamCounts) usersOfAllNodes(ctx context.Context) ([]string, error) {
	if !c.service.db.Shared() {
		return c.service.hub.Users(), nil
	}
	return store.All(ctx, c.service.db, store.Text, selectStreamUsers)
}
