package store

import (
	"context"
	"sync"
)

// memoLimit bounds the remembered numbers; beyond it all are forgotten, which costs one count each.
const memoLimit = 4096

// memo remembers numbers until one of their tables changes.
type memo struct {
	mu      sync.Mutex
	entries map[string]*memoEntry
}

// memoEntry is a number, or the wait for it.
type memoEntry struct {
	version uint64 // of the tables, taken before the number was read
	ready   chan struct{}
	value   int64
	err     error
}

// Memo gives what load gives, and remembers it under the key until a commit touches one of the tables;
// callers at the same time share one load. A number read before a commit is never given to a caller
// who comes after it. An error is not remembered. The load runs under the context of the caller that
// came first; when that one leaves, the others load for themselves.
func (db *DB) Memo(ctx context.Context, key string, tables []string, load func() (int64, error)) (int64, error) {
	version := db.Version(tables...)
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

// entry finds the entry of this version, or makes it; then the caller is the first and has to load.
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
