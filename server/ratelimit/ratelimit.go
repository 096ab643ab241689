// Package ratelimit keeps requests within a rate.
//
// The algorithm is GCRA (ITU-T I.371): for each key one number, the theoretical arrival time of the next request, is
// kept. A request conforms while that time is not further ahead than the burst allows. A whole minute's worth may come
// at once; after that one request is let in every 60 s / limit.
package ratelimit

import (
	"hash/maphash"
	"sync"
	"time"
)

// Class says which rule holds for an endpoint and who is counted. The zero Class is no decision.
type Class uint8

// The classes.
const (
	Undecided Class = iota
	None            // never limited: health, metrics and the files of the console
	Public          // by client network, rate_limits.public_per_minute
	Private         // by user or API key, a stored rule or rate_limits.private_per_minute
)

// String names the class as the list of endpoints shows it.
func (c Class) String() string {
	return [...]string{"undecided", "none", "public", "private"}[c]
}

// Verdict is the answer for one request.
type Verdict struct {
	Allowed    bool
	Limit      int           // requests a minute
	Remaining  int           // requests that may still come at once
	Reset      time.Duration // until the whole burst is free again
	RetryAfter time.Duration // until the next request conforms; zero when allowed
}

const (
	shards         = 64
	entriesAShard  = 4096 // 262,144 keys in all; at 100 bytes a key 26 MB at the very most
	sweepThreshold = entriesAShard * 3 / 4
	period         = time.Minute
)

// Limiter counts requests by key. It is bounded: an entry is only forgotten once it equals a fresh one, and when there
// is no room all new keys of a shard share one bucket. It never answers "allowed" for want of room.
//
// It measures time from its beginning, with the monotonic clock where now has one, and never believes in an arrival that
// is further ahead than a whole burst: a clock that is set back keeps nobody waiting for longer than a minute.
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

// New gives a limiter that reads the time from now.
func New(now func() time.Time) *Limiter {
	l := &Limiter{now: now, began: now(), seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].arrivals = map[string]int64{}
	}
	return l
}

// Allow counts a request of the key against a limit in requests a minute and tells whether it may proceed. A limit of
// zero or less lets nothing in.
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
	verdict, next := conform(now, arrival, perMinute)
	if verdict.Allowed || next < arrival { // or the clock was set back, and the wait begins anew
		if shared {
			s.overflow = next
		} else {
			s.arrivals[string(key)] = next
		}
	}
	return verdict
}

// Refund undoes the count of one request of the key that was allowed, for a count of failures that has to come before
// the outcome is known.
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

// conform is the algorithm itself: it decides about a request at now and gives the new theoretical arrival time.
func conform(now, arrival int64, perMinute int) (Verdict, int64) {
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

// room reports whether a new key fits, after forgetting the keys that equal fresh ones where it is due.
func (s *shard) room(now int64) bool {
	if len(s.arrivals) < sweepThreshold {
		return true
	}
	if now >= s.nextTidy || now < s.nextTidy-int64(time.Second) { // due, or the clock was set back
		s.nextTidy = now + int64(time.Second) // a full shard is not walked for every request of a flood
		for key, arrival := range s.arrivals {
			if arrival <= now || arrival > now+int64(period) {
				delete(s.arrivals, key)
			}
		}
	}
	return len(s.arrivals) < entriesAShard
}
