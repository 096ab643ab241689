package auth

import (
	"sync"

	"kontor/server/apierr"
)

const (
	// networkAtOnce is how many sign-ins of one network (/32, /48) are under way at once. It bounds what parallel guesses can exceed
	// valuesPerNetwork by, and keeps one network from taking all places in the queue of the hasher.
	networkAtOnce = 16

	// maxWaiting is how many more may wait for the same turn.
	maxWaiting = 256
)

// turns let a few callers at a time do something for a key. An attempt counts as failed until it has succeeded: without
// turns, those who sign in at the same moment with the right password would use up each other's free attempts.
type turns struct {
	atOnce int

	mu    sync.Mutex
	taken map[string]*turn
}

type turn struct {
	places chan struct{}
	users  int // who has a place or waits for one
}

func newTurns(atOnce int) *turns { return &turns{atOnce: atOnce, taken: map[string]*turn{}} }

// take waits for the turn of a key, or returns apierr.Unavailable when too many wait. Call done when the outcome is stored.
func (t *turns) take(key string) (done func(), err error) {
	t.mu.Lock()
	own := t.taken[key]
	if own == nil {
		own = &turn{places: make(chan struct{}, t.atOnce)}
		t.taken[key] = own
	}
	if own.users >= t.atOnce+maxWaiting {
		t.mu.Unlock()
		return nil, apierr.Unavailable.RetryAfter(retryHashing)
	}
	own.users++
	t.mu.Unlock()
	own.places <- struct{}{}
	return func() {
		<-own.places
		t.mu.Lock()
		defer t.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(t.taken, key)
		}
	}, nil
}

// takeTurn waits until an attempt may be made. Who waits for the same value holds no place of the network.
func (s *Service) takeTurn(a attempt) (done func(), err error) {
	leavePair, err := s.pairs.take(a.own.subject)
	if err != nil {
		return nil, err
	}
	leaveNetwork, err := s.networks.take(a.widest())
	if err != nil {
		leavePair()
		return nil, err
	}
	return func() {
		leaveNetwork()
		leavePair()
	}, nil
}
