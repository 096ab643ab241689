// Package revocable caches rights that can be revoked: an entry is invalid for the very next reader after a revocation, whatever
// the cache still holds.
package revocable

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/ristretto/v2"
)

// Generations count revocations. An entry is cached together with the count from before its row was read, and is valid only
// while the count is the same. So an entry that was read before a revocation is invalid after it, whenever the cache stores
// it. Users share counters by hash. A shared counter costs a further read, and never keeps a revoked right.
//
// A process that may have missed revocations of others must not use what it remembers. Then no entry is valid.
type Generations struct {
	remembers func() bool
	seed      maphash.Seed
	counters  [4096]atomic.Uint64
}

// NewGenerations returns counters at zero. remembers reports whether this process receives all revocations; it must be quick, such as
// [kontor/store.DB.Remembers].
func NewGenerations(remembers func() bool) *Generations {
	return &Generations{remembers: remembers, seed: maphash.MakeSeed()}
}

func (g *Generations) counter(id string) *atomic.Uint64 {
	return &g.counters[maphash.String(g.seed, id)%uint64(len(g.counters))]
}

// Now returns the generation of an id. Call it before reading the table.
func (g *Generations) Now(id string) Generation {
	counter := g.counter(id)
	return Generation{remembers: g.remembers, counter: counter, count: counter.Load()}
}

// End invalidates everything that was read for an id so far. Call it after the commit. An empty id stands for all ids.
func (g *Generations) End(id string) {
	if id != "" {
		g.counter(id).Add(1)
		return
	}
	for i := range g.counters {
		g.counters[i].Add(1)
	}
}

// Generation is the count of an id at a time.
type Generation struct {
	remembers func() bool
	counter   *atomic.Uint64
	count     uint64
}

// Valid reports whether nothing was revoked since. It asks first whether all revocations have arrived: the count is only then complete.
func (g Generation) Valid() bool { return g.remembers() && g.counter.Load() == g.count }

// Cache is a ristretto cache, which may drop entries at any time. It compares whole keys; ristretto itself compares hashes
// only.
type Cache[V any] struct {
	entries entries[*cached[V]]
}

// entries are the methods of ristretto that Cache uses. Packages that see a Cache do not compile the others.
type entries[V any] interface {
	Get(key string) (V, bool)
	Set(key string, value V, cost int64) bool
	Wait()
	Clear()
	Close()
}

type cached[V any] struct {
	key   string
	value V
}

// NewCache returns a cache for about size entries.
func NewCache[V any](size int64) *Cache[V] {
	seed := maphash.MakeSeed()
	// The library recommends ten counters of its frequency sketch for each entry. Four, as in Caffeine, take 0.6 MB for the 32,768
	// entries of a cache instead of 1.4.
	const countersPerEntry, batch = 4, 64
	entries, err := ristretto.NewCache(&ristretto.Config[string, *cached[V]]{
		NumCounters: countersPerEntry * size, MaxCost: size, BufferItems: batch, IgnoreInternalCost: true,
		// Keys come from clients. With a seeded hash they cannot choose keys that evict those of others. The second hash
		// only distinguishes keys, which comparing whole keys does better.
		KeyToHash: func(key string) (uint64, uint64) { return maphash.String(seed, key), 0 },
	})
	if err != nil {
		panic(err) // only a size below 1 is rejected
	}
	return &Cache[V]{entries: entries}
}

// Get returns the value of a key.
func (c *Cache[V]) Get(key string) (value V, ok bool) {
	entry, ok := c.entries.Get(key)
	if !ok || entry.key != key {
		return value, false
	}
	return entry.value, true
}

// Put stores a value, which the cache may drop at any time.
func (c *Cache[V]) Put(key string, value V) {
	c.entries.Set(key, &cached[V]{key: key, value: value}, 1)
}

// Close ends the goroutines of the cache.
func (c *Cache[V]) Close() { c.entries.Close() }

// Wait returns when all values so far are stored or dropped.
func (c *Cache[V]) Wait() { c.entries.Wait() }

// Clear empties the cache.
func (c *Cache[V]) Clear() { c.entries.Clear() }

// Loader lets concurrent callers share a load of something that is remembered. So a flood of requests costs one load at a time.
type Loader struct {
	mu    sync.Mutex // held during a load
	began atomic.Uint64
	err   error // of the latest load
}

// Do returns after a load that began after the call, and returns its error. Only if the context of that load has ended, the caller
// loads for itself.
func (l *Loader) Do(ctx context.Context, load func(ctx context.Context) error) error {
	return l.after(ctx, l.began.Load(), load)
}

// after returns after a load that began after the given number of loads.
func (l *Loader) after(ctx context.Context, before uint64, load func(ctx context.Context) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.began.Load() > before && !interrupted(l.err) {
		return l.err
	}
	l.began.Add(1)
	l.err = context.Canceled // of a load that panics
	l.err = load(ctx)
	return l.err
}

func interrupted(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
