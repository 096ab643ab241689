package revocable

import "testing"

// Ristretto compares hashes. Two keys with the same hash must not share an entry.
func TestCache_ComparesWholeKeys(t *testing.T) {
	m, err := NewCache[int](16)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.entries.Set("asked for", &cached[int]{key: "another", value: 1}, 1)
	m.Wait()
	if _, ok := m.Get("asked for"); ok {
		t.Error("the cache returned the value of another key")
	}
}

// An entry that was read before a revocation is invalid after it.
func TestGeneration_EndsWithARevocation(t *testing.T) {
	g := NewGenerations()
	read := g.Now("user")
	if !read.Valid() {
		t.Error("a new generation is invalid")
	}
	g.End("user")
	if read.Valid() || !g.Now("user").Valid() {
		t.Error("a revocation does not separate reads before it from reads after it")
	}
}
