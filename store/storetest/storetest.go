// Package storetest gives tests a database of their own.
package storetest

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"kontor/store"
)

// Clock is a clock that moves only when a test moves it.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that shows a fixed moment: 31 January 2026, 08:15:30.123 UTC.
func NewClock() *Clock {
	return &Clock{now: time.Date(2026, time.January, 31, 8, 15, 30, 123e6, time.UTC)}
}

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Set moves the clock to t.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// Open returns a fresh, migrated database with the system's clock. It is deleted at the end of the test.
func Open(t testing.TB) *store.DB {
	t.Helper()
	return open(t, store.Options{})
}

// OpenWith returns a fresh database with a clock of the test.
func OpenWith(t testing.TB, clock *Clock) *store.DB {
	t.Helper()
	return open(t, store.Options{Clock: clock})
}

func open(t testing.TB, o store.Options) *store.DB {
	t.Helper()
	o.Dir = Dir(t)
	o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	db, err := store.Open(context.Background(), o)
	if err != nil {
		t.Fatalf("open the database: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the database: %v", err)
		}
	})
	return db
}

// Plan returns the steps of the query plan for a statement.
func Plan(t testing.TB, db *store.DB, sql string, args ...any) []string {
	t.Helper()
	rows, err := db.Query(t.Context(), "EXPLAIN QUERY PLAN "+sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	defer rows.Close()
	var steps []string
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, step)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return steps
}

// Dir returns a data directory with a fresh, migrated, closed database.
func Dir(t testing.TB) string {
	t.Helper()
	files, err := template()
	if err != nil {
		t.Fatalf("make a database: %v", err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// template creates a database once for all tests of a process: copying its files is much faster.
var template = sync.OnceValues(func() (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "storetest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	db, err := store.Open(context.Background(), store.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	files := make(map[string][]byte)
	for _, name := range []string{"kontor.db", "secret.key"} {
		if files[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return files, nil
})
