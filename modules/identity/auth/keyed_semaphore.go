package auth

import (
	"sync"

	"kontor/server/apierr"
)

const (
	// networkAtOnce is the number of concurrent sign-ins from one network (/32, /48). It limits by how much parallel guesses
	// can exceed valuesPerNetwork, and keeps one network from filling the queue of the hasher. The nodes of a shared database
	// divide it.
	networkAtOnce = 16

	// maxWaiting is the number of callers that may wait for one key.
	maxWaiting = 256
)

// keyedSemaphore limits the number of concurrent holders for each key. An attempt counts as failed until it has succeeded:
// without the limit, concurrent sign-ins with the right password would use up each other's free attempts.
type keyedSemaphore struct {
	atOnce func() int // at least 1; asked for the first holder of a key

	mu    sync.Mutex
	taken map[string]*waiters
}

type waiters struct {
	places chan struct{}
	users  int // holders and waiting callers
}

func newKeyedSemaphore(atOnce func() int) *keyedSemaphore {
	return &keyedSemaphore{atOnce: atOnce, taken: map[string]*waiters{}}
}

// acquire waits for a place of a key. It returns apierr.Unavailable when too many callers wait. Callers must call release once
// the outcome of the attempt is stored.
func (t *keyedSemaphore) acquire(key string) (release func(), err error) {
	t.mu.Lock()
	own := t.taken[key]
	if own == nil {
		own = &waiters{places: make(chan struct{}, t.atOnce())}
		t.taken[key] = own
	}
	if own.users >= cap(own.places)+maxWaiting {
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

// onePlace is the number of concurrent attempts for a value from a network.
func onePlace() int { return 1 }

// networkPlaces returns this node's share of networkAtOnce.
func (s *Service) networkPlaces() int { return max(1, networkAtOnce/s.db.LiveNodes()) }

// acquireTurn waits until an attempt may be made: first for the pair of value and network, then for the network, so that
// attempts that wait for a pair hold no place of the network.
func (s *Service) acquireTurn(a attempt) (release func(), err error) {
	releasePair, err := s.pairs.acquire(a.own.subject)
	if err != nil {
		return nil, err
	}
	releaseNetwork, err := s.networks.acquire(a.widest())
	if err != nil {
		releasePair()
		return nil, err
	}
	return func() {
		releaseNetwork()
		releasePair()
	}, nil
}
