package seed

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"
)

// ids returns the same ids each time that the same run plays the same steps. They are UUIDs of version 7, whose times are not those of
// the records. A counter in them makes them grow.
type ids struct {
	mu      sync.Mutex
	run     int64
	step, n int
	random  bool // return no ids: what is created now is no result of the step
}

// firstID is the time in the ids of the first run; each further run is an hour and each step a second later.
var firstID = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (s *ids) begin(step int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step, s.n = step, 0
}

// aside runs f, whose records get random ids.
func (s *ids) aside(f func() error) error {
	s.set(true)
	defer s.set(false)
	return f()
}

func (s *ids) set(random bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.random = random
}

// perMillisecond is how many ids share a time: the counter has 12 bits.
const perMillisecond = 1 << 12

func (s *ids) next() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.random {
		return ""
	}
	s.n++
	at := firstID.Add(time.Duration(s.run)*time.Hour+time.Duration(s.step)*time.Second).UnixMilli() + int64(s.n/perMillisecond)
	sum := sha256.Sum256(fmt.Appendf(nil, "kontor %d %d %d", s.run, s.step, s.n))
	milliseconds, random := fmt.Sprintf("%012x", at), hex.EncodeToString(sum[:])
	// Version 7, with the counter, and the variant of RFC 9562.
	return fmt.Sprintf("%s-%s-7%03x-a%s-%s", milliseconds[:8], milliseconds[8:], s.n%perMillisecond, random[:3], random[3:15])
}
