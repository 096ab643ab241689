package app

import (
	"context"
	"sync/atomic"
	"time"

	"kontor/modules/kit/revocable"
	"kontor/store"
)

// memory says whether this process may use what it remembers of rights and keys. It implements [kontor/server.Memory].
type memory struct {
	*Modules
	loads revocable.Loader
}

// Remembers reports whether this process has received all announcements, and could read the changes.
func (m *memory) Remembers() bool { return m.DB.Remembers() && m.DB.KeysCurrent() }

// Renew reads the keys of the database and the policy again, as far as they have changed. Concurrent requests share one try.
func (m *memory) Renew(ctx context.Context) error {
	return m.loads.Do(ctx, func(ctx context.Context) error {
		if err := m.DB.RenewKeys(ctx); err != nil { // before what is sealed with them
			return err
		}
		return m.RBAC.Renew(ctx)
	})
}

// nodeCount counts the live nodes, at most once a second.
type nodeCount struct {
	db    *store.DB
	nodes atomic.Int64
	until atomic.Int64 // in nanoseconds since began
	began time.Time
}

// newNodeCount returns the function that counts the nodes of a shared database, or nil for any other.
func newNodeCount(db *store.DB) func() int {
	if !db.Shared() {
		return nil
	}
	c := &nodeCount{db: db, began: time.Now()}
	return c.count
}

func (c *nodeCount) count() int {
	if now := int64(time.Since(c.began)); now >= c.until.Load() {
		c.until.Store(now + int64(time.Second))
		n := int64(0)
		for _, node := range c.db.Nodes() {
			if node.Live {
				n++
			}
		}
		c.nodes.Store(max(1, n))
	}
	return int(c.nodes.Load())
}
