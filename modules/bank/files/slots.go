package files

import "sync"

// The transfers, uploads and downloads, that run at the same time on a node. Each holds a chunk in memory.
const (
	maxTransfers          = 128
	maxTransfersPerCaller = 64
	// chunksAtOnce is how many chunks may wait for the writer at the same time. Other writes of the same group wait for them.
	chunksAtOnce = 1
)

// slots bounds what runs at the same time, in all and for each caller.
type slots struct {
	mutex     sync.Mutex
	all, each int
	taken     int
	holds     map[string]int
}

func newSlots(all, each int) *slots { return &slots{all: all, each: each, holds: map[string]int{}} }

// acquire takes a slot. It reports false when there is none.
func (s *slots) acquire(caller string) (release func(), ok bool) {
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
