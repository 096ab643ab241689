package store

import (
	"sync/atomic"
	"time"
)

// liveNodes is the number of nodes with a lease, counted at most once a second.
type liveNodes struct {
	count atomic.Int64
	until atomic.Int64 // Unix nanoseconds
}

// LiveNodes returns the number of processes that use the database, this one among them. On a shared database it may be a second old,
// so that callers may ask for each request.
func (db *DB) LiveNodes() int {
	if !db.Shared() {
		return 1
	}
	l := &db.live
	if now := time.Now().UnixNano(); now >= l.until.Load() || l.until.Load() > now+int64(time.Second) { // due, or the clock was set back
		l.until.Store(now + int64(time.Second))
		n := int64(0)
		for _, node := range db.Nodes() {
			if node.Live {
				n++
			}
		}
		l.count.Store(n)
	}
	return int(max(1, l.count.Load()))
}
