// Package ratelimit limits the rate of requests.
//
// The algorithm is GCRA (ITU-T I.371): it stores one number for each key, the theoretical arrival time of the next request.
// A request conforms while that time is not further ahead than the burst allows. All requests of a minute may come at once;
// after that, one request is allowed every 60 s / limit.
package ratelimit

import (
	"hash/maphash"
	"sync"
	"time"
)

// Class selects the limit of an endpoint and what is counted. The zero Class is invalid.
type Class uint8

// The classes.
const (
	Undecided Class = iota
	None            // never limited: health, metrics and the files of the console
	Public          // by client network, rate_limits.public_per_minute
	Private         // by user or API key, a stored rule or rate_limits.private_per_minute
)

// String returns the name of the class as the list of endpoints shows it.
func (c Class) String() string {
	return [...]string{"undecided", "none", "public", "private"}[c]
}

// Verdict is the decision about one request.
type Verdict struct {
	Allowed    bool
	Limit      int           // requests a minute
	Remaining  int           // requests that are still allowed at once
	Reset      time.Duration // until the whole burst is allowed again
	RetryAfter time.Duration // until the next request conforms; zero when allowed
}

const (
	shards         = 64
	entriesAShard  = 4096 // 262,144 keys in all; at 100 bytes a key, 26 MB at most
	sweepThreshold = entriesAShard * 3 / 4
	period         = time.Minute
)

// Limiter counts requests by key. Its memory is bounded: an entry is removed only when it equals a new one, and when a shard
// is full, all its new keys share one bucket. It never allows a request because memory is full.
//
// It measures time from its creation, with the monotonic clock if now has one. An arrival that is further ahead than a whole
// burst is ignored, so that a clock that is set back delays callers for a minute at most.
type Limiter struct {
	now    func() time.Time
	began  time.Time
	seed   maphash.Seed
	shards [shards]shard
}

type shard struct {
	mu       sync.Mutex
	arrivals map[string]int64 // key → theoretical arrival time, nanoseconds since the limiter began
	overflow int64
	nextTidy int64
}

// New returns a limiter that reads the time from now.
func New(now func() time.Time) *Limiter {
	l := &Limiter{now: now, began: now(), seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].arrivals = map[string]int64{}
	}
	return l
}

// Allow counts a request of the key against a limit in requests a minute and decides whether it may proceed. A limit of
// zero or less rejects all requests.
func (l *Limiter) Allow(key []byte, perMinute int) Verdict {
	if perMinute <= 0 {
		return Verdict{RetryAfter: period, Reset: period}
	}
	now := l.now().Sub(l.began).Nanoseconds()
	s := &l.shards[maphash.Bytes(l.seed, key)%shards]
	s.mu.Lock()
	defer s.mu.Unlock()

	arrival, known := s.arrivals[string(key)]
	shared := !known && !s.room(now)
	switch {
	case shared:
		arrival = s.overflow
	case !known:
		arrival = now
	}
	verdict, next := Conform(now, arrival, perMinute)
	if verdict.Allowed || next < arrival { // or the clock was set back, and the wait starts again
		if shared {
			s.overflow = next
		} else {
			s.arrivals[string(key)] = next
		}
	}
	return verdict
}

// Refund reverts the count of one allowed request of the key. It is for counting failures when requests must be counted
// before the outcome is known.
func (l *Limiter) Refund(key []byte, perMinute int) {
	if perMinute <= 0 {
		return
	}
	interval := int64(period) / int64(perMinute)
	s := &l.shards[maphash.Bytes(l.seed, key)%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if arrival, known := s.arrivals[string(key)]; known {
		s.arrivals[string(key)] = arrival - interval
	} else {
		s.overflow -= interval
	}
}

// Conform implements GCRA for a positive limit: it decides about a request at now and returns the new theoretical arrival time. Both
// times are nanoseconds of the same clock.
func Conform(now, arrival int64, perMinute int) (Verdict, int64) {
	interval := int64(period) / int64(perMinute)
	burst := interval * int64(perMinute)
	arrival = min(max(arrival, now), now+burst)
	next := arrival + interval
	ahead := next - now
	if ahead > burst {
		return Verdict{Limit: perMinute, RetryAfter: time.Duration(ahead - burst), Reset: time.Duration(arrival - now)}, arrival
	}
	return Verdict{Allowed: true, Limit: perMinute, Remaining: int((burst - ahead) / interval), Reset: time.Duration(ahead)}, next
}

// room reports whether a new key fits. From time to time it removes the keys that equal new ones.
func (s *shard) room(now int64) bool {
	if len(s.arrivals) < sweepThreshold {
		return true
	}
	if now >= s.nextTidy || now < s.nextTidy-int64(time.Second) { // due, or the clock was set back
		s.nextTidy = now + int64(time.Second) // a full shard is not scanned for every request of a flood
		for key, arrival := range s.arrivals {
			if arrival <= now || arrival > now+int64(period) {
				delete(s.arrivals, key)
			}
		}
	}
	return len(s.arrivals) < entriesAShard
}
