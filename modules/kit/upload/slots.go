package upload

import "sync"

// Slots bounds the transfers that run at the same time on a node, in all and for each caller.
type Slots struct {
	mutex     sync.Mutex
	all, each int
	taken     int
	holds     map[string]int
}

// NewSlots returns slots for so many transfers, in all and for each caller.
func NewSlots(all, each int) *Slots { return &Slots{all: all, each: each, holds: map[string]int{}} }

// Acquire takes a slot. It reports false when there is none.
func (s *Slots) Acquire(caller string) (release func(), ok bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.taken >= s.all || s.holds[caller] >= s.each {
		return nil, false
	}
	s.taken++
	s.holds[caller]++
	return sync.OnceFunc(func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.taken--
		if s.holds[caller]--; s.holds[caller] == 0 {
			delete(s.holds, caller)
		}
	}), true
}
