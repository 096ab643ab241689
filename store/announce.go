package store

import (
	"sync/atomic"
	"time"

	"kontor/store/engine"
)

// A Topic is a kind of change that transactions announce to all processes, or nodes, that use the database.
type Topic struct{ topic *engine.Topic }

// A Node is a process that uses the database.
type Node = engine.Node

// Topic returns the topic of a name, and registers a function that receives the keys of its announcements. Register before
// reading what an announcement makes stale. When a name is registered again, all of its functions receive all keys.
//
// receive must be quick. It may read the database and must not write. An empty key means that announcements were missed:
// everything that depends on the topic may have changed. Any text may arrive as a key, see engine.Cluster.
func (db *DB) Topic(name string, receive func(key string)) *Topic {
	return &Topic{db.engine.Topic(name, receive)}
}

// Announce announces a change after which no node may use what it remembers under the key: every node has received the key
// before InTx returns, or may not use what it remembers. Nothing is announced when the transaction fails.
func (tx *Tx) Announce(t *Topic, key string) {
	tx.tx.Announce(engine.Announcement{Topic: t.topic, Key: key, Delivery: engine.Strict})
}

// AnnounceSoon announces a change that this node receives before InTx returns, and others within milliseconds.
func (tx *Tx) AnnounceSoon(t *Topic, key string) {
	tx.tx.Announce(engine.Announcement{Topic: t.topic, Key: key, Delivery: engine.Soon})
}

// Publish announces the commit to all nodes in the order of the commits of all nodes. On this node local is called instead of
// the receivers of the topic, unless it is nil. With one process that happens before InTx returns. On a shared database
// InTx does not wait for it. Publications that are lost with a connection are replaced by an empty key.
func (tx *Tx) Publish(t *Topic, key string, local func()) {
	tx.tx.Announce(engine.Announcement{Topic: t.topic, Key: key, Delivery: engine.Ordered, Local: local})
}

// Remembers reports whether what this process remembers of the database may be used. It is true with one process. On a shared
// database it is false while the process cannot know whether it has received all announcements: read the database then.
// It takes tens of nanoseconds; ask before each use.
func (db *DB) Remembers() bool { return db.engine.Remembers() }

// Shared reports whether several processes may use the database at the same time.
func (db *DB) Shared() bool { return db.engine.Shared() }

// Leads reports whether this process runs the jobs that run once in a cluster. At most one process leads.
func (db *DB) Leads() bool { return db.engine.Leads() }

// Nodes returns the processes that use the database, ordered by start. On a shared database the list may be a second old.
func (db *DB) Nodes() []Node { return db.engine.Nodes() }

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

// Heavy reports that the calling goroutine begins work that belongs before the transaction: rendering, encoding, encryption,
// signatures. It does nothing unless a test watches, see [DB.WatchWriter].
func (db *DB) Heavy(work string) {
	if watch := db.watch.Load(); watch != nil && db.engine.InJob() {
		(*watch)(work)
	}
}

// WatchWriter makes Heavy call f, on the writer's goroutine, when a function of InTx does heavy work while all other writes
// wait. It is for the test that keeps such work out of transactions.
func (db *DB) WatchWriter(f func(work string)) { db.watch.Store(&f) }
