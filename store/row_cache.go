package store

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"kontor/store/audittrail"
	"kontor/store/engine"
)

const (
	// RowCacheBytes bounds the values of one RowCache, with their keys and what the cache needs for each.
	RowCacheBytes = 16 << 20
	// rowCacheEntry is what an entry takes without its key and value, in bytes.
	rowCacheEntry = 160
	// rowCacheLargest is the size of a value from which it is not kept, so that few records do not displace many.
	rowCacheLargest = 32 << 10
)

// A RowCache remembers what was made of single rows of one table, and of nothing else: no other table, and not the time. A caller
// never gets a value that is older than a commit which was acknowledged before the call. Before a commit changes or deletes a
// row, its value leaves the memory of the cache. Until the commit is done, and for reads that began before it, nothing is added.
//
// On an engine that does not know which rows its commits change, such as that of a database which several processes share, it
// remembers nothing.
type RowCache[V any] struct {
	db         *DB
	table, key string

	mu      sync.Mutex
	entries map[string]*rowEntry[V]
	bytes   int

	// changes is odd while a commit changes rows, and before the cache is informed of all commits.
	changes  atomic.Uint64
	watching sync.Mutex
	asked    atomic.Bool
}

type rowEntry[V any] struct {
	value V
	bytes int
	used  bool // since the last clearing
}

// NewRowCache returns an empty cache of values that are made of the rows of a table. key is the column whose text identifies a row.
func NewRowCache[V any](db *DB, table, key string) *RowCache[V] {
	c := &RowCache[V]{db: db, table: table, key: key, entries: map[string]*rowEntry[V]{}}
	c.changes.Store(1)
	return c
}

// Get returns the value of a row, if it is known.
func (c *RowCache[V]) Get(id string) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries[id].use()
}

// Lookup is Get for an id that is held as bytes, which it does not keep.
func (c *RowCache[V]) Lookup(id []byte) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries[string(id)].use()
}

// use returns the value of an entry, if there is one, and notes its use.
func (e *rowEntry[V]) use() (value V, ok bool) {
	if e == nil {
		return value, false
	}
	if !e.used { // most are: a write would take the entry from the cache of other processors
		e.used = true
	}
	return e.value, true
}

// A Reading is the time from which rows are read that are to be remembered.
type Reading uint64

// Begin must be called before the statement that reads rows.
func (c *RowCache[V]) Begin(ctx context.Context) Reading {
	if !c.asked.Load() {
		c.watch(ctx)
	}
	return Reading(c.changes.Load())
}

// Holds reports whether no commit that changes or deletes rows has ended since. Values that Get has returned in the meantime are then
// those of the rows as a statement after Begin has found them: while such a commit runs, the values of its rows are not in memory, and
// nothing is added.
func (c *RowCache[V]) Holds(since Reading) bool { return c.changes.Load()/2 == uint64(since)/2 }

// Put remembers a value that was made of a row which was read since, unless rows have changed in the meantime. bytes is the memory
// that the value takes.
func (c *RowCache[V]) Put(since Reading, id string, value V, bytes int) {
	if since%2 == 1 || bytes > rowCacheLargest {
		return
	}
	bytes += len(id) + rowCacheEntry
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes.Load() != uint64(since) { // a commit that begins from here on waits for the lock and removes the entry
		return
	}
	c.remove(id)
	c.entries[id] = &rowEntry[V]{value: value, bytes: bytes}
	c.bytes += bytes
	c.evict(id)
}

// Bytes returns what the values take.
func (c *RowCache[V]) Bytes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

// watch asks the engine once for the rows that its commits change. If that fails, nothing is remembered.
func (c *RowCache[V]) watch(ctx context.Context) {
	c.watching.Lock()
	defer c.watching.Unlock()
	if c.asked.Load() {
		return
	}
	watcher, follows := c.db.engine.(engine.RowWatcher)
	if !follows || c.db.Shared() {
		c.asked.Store(true)
		return
	}
	err := watcher.WatchRows(ctx, engine.RowWatch{Table: c.table, Key: c.key, Begin: c.forget, End: func() { c.changes.Add(1) }})
	if err != nil && (ctx.Err() != nil || Temporary(err) || errors.Is(err, ErrNested)) {
		return // a later caller asks again
	}
	if err != nil {
		c.db.log.Error("rows are not remembered", "table", c.table, "cause", err)
	}
	c.asked.Store(true)
}

// forget removes the values of rows, or all without keys, before a commit changes the rows. No value is added until the commit is done.
func (c *RowCache[V]) forget(ids []string) {
	c.changes.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if ids == nil {
		c.entries, c.bytes = map[string]*rowEntry[V]{}, 0
	}
	for _, id := range ids {
		c.remove(id)
	}
}

func (c *RowCache[V]) remove(id string) {
	if e := c.entries[id]; e != nil {
		c.bytes -= e.bytes
		delete(c.entries, id)
	}
}

// evict removes entries that were not used since it last came across them, except one, until the bytes fit.
func (c *RowCache[V]) evict(kept string) {
	for c.bytes > RowCacheBytes {
		for id, e := range c.entries {
			if id == kept {
				continue
			}
			if e.used {
				e.used = false
				continue
			}
			c.remove(id)
			if c.bytes <= RowCacheBytes {
				return
			}
		}
	}
}

// Recall returns a number that changes when a value that a transaction keeps in memory for the next one must be read again:
// the transaction of a group was undone, or another process may have written since. On SQLite, where one process writes, the
// number changes after the first. On a database that several processes share, it also changes with each group. A transaction
// that is undone alone does not change it.
func (tx *Tx) Recall() uint64 { return tx.db.recall.Load() }

// groupGuard counts how often the engine tells the guard to forget.
type groupGuard struct {
	*audittrail.Guard
	forgotten *atomic.Uint64
}

// Forget makes the ledger read the table again, and ends the current number of [Tx.Recall].
func (g groupGuard) Forget() {
	g.forgotten.Add(1)
	g.Guard.Forget()
}
