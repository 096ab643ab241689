package auth

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/dgraph-io/ristretto/v2"
)

const (
	// maxTokens is the number of verified tokens, and of sessions, in memory: about 30 MB when full.
	maxTokens = 32 << 10
	maxKeys   = 1 << 10
)

// generations count revocations. An entry is cached together with the count from before its row was read, and is valid only
// while the count is the same. So an entry that was read before a revocation is invalid after it, whenever the cache stores
// it. Users share counters by hash. A shared counter costs a further read, and never keeps a revoked right.
type generations struct {
	seed     maphash.Seed
	counters [4096]atomic.Uint64
}

func newGenerations() *generations { return &generations{seed: maphash.MakeSeed()} }

func (g *generations) counter(id string) *atomic.Uint64 {
	return &g.counters[maphash.String(g.seed, id)%uint64(len(g.counters))]
}

// now returns the generation of an id. Call it before reading the table.
func (g *generations) now(id string) generation {
	counter := g.counter(id)
	return generation{counter: counter, count: counter.Load()}
}

// end invalidates everything that was read for an id so far. Call it after the commit.
func (g *generations) end(id string) { g.counter(id).Add(1) }

type generation struct {
	counter *atomic.Uint64
	count   uint64
}

func (g generation) valid() bool { return g.counter.Load() == g.count }

// cache is a ristretto cache, which may drop entries at any time. It compares whole keys; ristretto itself compares hashes
// only.
type cache[V any] struct {
	entries *ristretto.Cache[string, *cached[V]]
}

type cached[V any] struct {
	key   string
	value V
}

func newCache[V any](size int64) (*cache[V], error) {
	seed := maphash.MakeSeed()
	const countersPerEntry, batch = 10, 64 // as the library recommends
	entries, err := ristretto.NewCache(&ristretto.Config[string, *cached[V]]{
		NumCounters: countersPerEntry * size, MaxCost: size, BufferItems: batch, IgnoreInternalCost: true,
		// Keys come from clients. With a seeded hash they cannot choose keys that evict those of others. The second hash
		// only distinguishes keys, which comparing whole keys does better.
		KeyToHash: func(key string) (uint64, uint64) { return maphash.String(seed, key), 0 },
	})
	return &cache[V]{entries: entries}, err
}

func (c *cache[V]) get(key string) (value V, ok bool) {
	entry, ok := c.entries.Get(key)
	if !ok || entry.key != key {
		return value, false
	}
	return entry.value, true
}

func (c *cache[V]) put(key string, value V) {
	c.entries.Set(key, &cached[V]{key: key, value: value}, 1)
}

func (c *cache[V]) close() { c.entries.Close() }
