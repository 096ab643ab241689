package revocable

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

// Ristretto compares hashes. Two keys with the same hash must not share an entry.
func TestCache_ComparesWholeKeys(t *testing.T) {
	m := NewCache[int](16)
	defer m.Close()
	m.entries.Set("asked for", &cached[int]{key: "another", value: 1}, 1)
	m.Wait()
	if _, ok := m.Get("asked for"); ok {
		t.Error("the cache returned the value of another key")
	}
}

// An entry that was read before a revocation is invalid after it.
func TestGeneration_EndsWithARevocation(t *testing.T) {
	g := NewGenerations(func() bool { return true })
	read := g.Now("user")
	if !read.Valid() {
		t.Error("a new generation is invalid")
	}
	g.End("user")
	if read.Valid() || !g.Now("user").Valid() {
		t.Error("a revocation does not separate reads before it from reads after it")
	}
}

func TestGeneration_EndsForAllIDs(t *testing.T) {
	g := NewGenerations(func() bool { return true })
	one, other := g.Now("one"), g.Now("other")
	g.End("")
	if one.Valid() || other.Valid() || !g.Now("one").Valid() {
		t.Error("the revocation of all does not separate reads before it from reads after it")
	}
}

// A process without its lease uses nothing that it remembers, and uses it again with the lease.
func TestGeneration_NeedsTheLease(t *testing.T) {
	var receives atomic.Bool
	g := NewGenerations(receives.Load)
	read := g.Now("user")
	if read.Valid() {
		t.Error("an entry is valid without the lease")
	}
	receives.Store(true)
	if !read.Valid() {
		t.Error("an entry is not valid with the lease")
	}
}

// Callers that come during a load need the next one: theirs may have begun before the change that they must see.
func TestLoader_SharesALoadThatBeganAfterTheCall(t *testing.T) {
	var l Loader
	loads := 0
	load := func(context.Context) error { loads++; return nil }
	for _, c := range []struct {
		before uint64 // loads that had begun when the caller came
		want   int
	}{{0, 1}, {0, 1}, {1, 2}, {0, 2}, {1, 2}, {2, 3}} {
		if err := l.after(t.Context(), c.before, load); err != nil || loads != c.want {
			t.Errorf("after %d: %d loads, want %d; %v", c.before, loads, c.want, err)
		}
	}
}

func TestLoader_ReturnsTheErrorAndSurvivesACancelledCaller(t *testing.T) {
	var l Loader
	broken := errors.New("broken")
	if err := l.Do(t.Context(), func(context.Context) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Do(ended, func(ctx context.Context) error { return ctx.Err() }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := l.Do(t.Context(), func(ctx context.Context) error { return ctx.Err() }); err != nil {
		t.Errorf("after a cancelled caller: %v", err)
	}
}
