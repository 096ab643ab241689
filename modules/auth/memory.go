package auth

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/dgraph-io/ristretto/v2"
)

const (
	// maxTokens is how many verified tokens and how many sessions are remembered, some 30 MB when full.
	maxTokens = 32 << 10
	maxKeys   = 1 << 10
)

// generations count revocations. What is read from a table is remembered together with the count from before the
// reading and is good only while that count stands: a reading that began before a revocation is worthless after it, in
// whatever order the cache takes things in. Users share counters by hash; sharing costs a reading, never a right.
type generations struct {
	seed     maphash.Seed
	counters [4096]atomic.Uint64
}

func newGenerations() *generations { return &generations{seed: maphash.MakeSeed()} }

func (g *generations) counter(id string) *atomic.Uint64 {
	return &g.counters[maphash.String(g.seed, id)%uint64(len(g.counters))]
}

// now gives the generation of an id. Take it before reading the table.
func (g *generations) now(id string) generation {
	counter := g.counter(id)
	return generation{counter: counter, count: counter.Load()}
}

// end makes everything worthless that was read for an id so far. Call it after the commit.
func (g *generations) end(id string) { g.counter(id).Add(1) }

type generation struct {
	counter *atomic.Uint64
	count   uint64
}

func (g generation) stands() bool { return g.counter.Load() == g.count }

// memory is a ristretto cache that may forget at any time, and that knows a value only by its whole key: the cache
// itself compares hashes.
type memory[V any] struct {
	entries *ristretto.Cache[string, *remembered[V]]
}

type remembered[V any] struct {
	key   string
	value V
}

func newMemory[V any](size int64) (*memory[V], error) {
	seed := maphash.MakeSeed()
	const countersPerEntry, batch = 10, 64 // as the library recommends
	entries, err := ristretto.NewCache(&ristretto.Config[string, *remembered[V]]{
		NumCounters: countersPerEntry * size, MaxCost: size, BufferItems: batch, IgnoreInternalCost: true,
		// Keys come from clients: a seeded hash keeps them from choosing keys that push out those of others. The second
		// hash is only there to tell keys apart; whole keys do that better.
		KeyToHash: func(key string) (uint64, uint64) { return maphash.String(seed, key), 0 },
	})
	return &memory[V]{entries: entries}, err
}

func (m *memory[V]) get(key string) (value V, ok bool) {
	entry, ok := m.entries.Get(key)
	if !ok || entry.key != key {
		return value, false
	}
	return entry.value, true
}

func (m *memory[V]) put(key string, value V) {
	m.entries.Set(key, &remembered[V]{key: key, value: value}, 1)
}

func (m *memory[V]) close() { m.entries.Close() }
