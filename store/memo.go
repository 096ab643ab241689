package store

import (
	"context"
	"sync"
)

// memoLimit bounds the remembered numbers. Beyond it all are forgotten, and each must be counted again.
const memoLimit = 4096

// memo remembers numbers until a commit writes to one of their tables.
type memo struct {
	mu      sync.Mutex
	entries map[string]*memoEntry
}

// memoEntry is a number that is known or being loaded.
type memoEntry struct {
	version uint64 // of the tables, taken before the number was read
	ready   chan struct{}
	value   int64
	err     error
}

// Memo returns the result of load, and remembers it under the key until a commit writes to one of the tables. Concurrent
// callers share one load. A caller that comes after a commit never gets a number that was read before it. An error is not
// remembered. The load uses the context of the caller that came first; if it fails, the other callers load for themselves.
func (db *DB) Memo(ctx context.Context, key string, tables []string, load func() (int64, error)) (int64, error) {
	version, err := db.Version(ctx, tables...)
	if err != nil {
		return 0, err
	}
	e, first := db.memo.entry(key, version)
	if !first {
		select {
		case <-e.ready:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		if e.err == nil {
			return e.value, nil
		}
		return load()
	}
	completed := false
	defer func() {
		if !completed { // load panicked
			e.err = ErrClosed
		}
		if e.err != nil {
			db.memo.forget(key, e)
		}
		close(e.ready)
	}()
	e.value, e.err = load()
	completed = true
	return e.value, e.err
}

// entry returns the entry of this version, or a new one; then first is true and the caller must load the number.
func (m *memo) entry(key string, version uint64) (e *memoEntry, first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.entries[key]; ok && e.version == version {
		return e, false
	}
	if m.entries == nil || len(m.entries) >= memoLimit {
		m.entries = make(map[string]*memoEntry)
	}
	e = &memoEntry{version: version, ready: make(chan struct{})}
	m.entries[key] = e
	return e, true
}

func (m *memo) forget(key string, e *memoEntry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries[key] == e {
		delete(m.entries, key)
	}
}
