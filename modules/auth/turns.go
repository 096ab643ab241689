package auth

import (
	"sync"

	"kontor/server/fault"
)

// maxTurns is how many may wait for the same value from the same network.
const maxTurns = 128

// turns let one caller at a time try a value from a network. An attempt counts as failed until it has succeeded: without
// turns, some who sign in at the same moment with the right password would use up each other's free attempts.
type turns struct {
	mu    sync.Mutex
	taken map[string]*turn
}

type turn struct {
	mu    sync.Mutex
	users int // who has it or waits for it
}

func newTurns() *turns { return &turns{taken: map[string]*turn{}} }

// take waits for the turn of a key, or returns fault.Unavailable when too many wait. Call done when the outcome is stored.
func (t *turns) take(key string) (done func(), err error) {
	t.mu.Lock()
	own := t.taken[key]
	if own == nil {
		own = &turn{}
		t.taken[key] = own
	}
	if own.users > maxTurns {
		t.mu.Unlock()
		return nil, fault.Unavailable.RetryAfter(retryHashing)
	}
	own.users++
	t.mu.Unlock()
	own.mu.Lock()
	return func() {
		own.mu.Unlock()
		t.mu.Lock()
		defer t.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(t.taken, key)
		}
	}, nil
}
