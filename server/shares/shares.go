// Package shares divides what a node has of something, such as places for transfers or memory for bodies, between its callers: no caller and
// no group of a few callers can take all of it.
package shares

import "sync"

// Pool is what callers share. Two rules keep some of it free:
//
//   - A part is for staff: other callers cannot take it.
//   - A caller never holds more than what stays free for others. So one caller gets half at most, two get a third each, and the next
//     caller still finds some.
type Pool struct {
	mu       sync.Mutex
	all      int64
	reserved int64
	taken    int64 // by all callers
	others   int64 // of it, by callers who are not staff
	holds    map[string]int64
}

// New returns a pool of so much, of which a part is reserved for staff.
func New(all, forStaff int64) *Pool {
	return &Pool{all: all, reserved: forStaff, holds: map[string]int64{}}
}

// Share is what a caller has taken. The zero value is nothing, of no pool.
type Share struct {
	pool   *Pool
	caller string
	staff  bool
	amount int64
}

// Of returns an empty share of a caller, which [Share.Grow] fills.
func (p *Pool) Of(caller string, staff bool) Share {
	return Share{pool: p, caller: caller, staff: staff}
}

// Grow takes more. It reports false, and takes nothing, if that exceeds what the caller may hold. A caller who holds nothing may take
// whatever is free.
func (s *Share) Grow(more int64) bool {
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	free := p.all - p.taken
	if !s.staff {
		free = min(free, p.all-p.reserved-p.others)
	}
	held := p.holds[s.caller]
	if more > free || held > 0 && held+more > free-more {
		return false
	}
	p.add(s, more)
	return true
}

// Release returns all that the share has taken. It may be called more than once.
func (s *Share) Release() {
	if s.pool == nil {
		return
	}
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.pool.add(s, -s.amount)
}

func (p *Pool) add(s *Share, more int64) {
	s.amount += more
	p.taken += more
	if !s.staff {
		p.others += more
	}
	if p.holds[s.caller] += more; p.holds[s.caller] == 0 {
		delete(p.holds, s.caller)
	}
}

// Take takes one place. release may be called more than once.
func (p *Pool) Take(caller string, staff bool) (release func(), ok bool) {
	share := p.Of(caller, staff)
	if !share.Grow(1) {
		return nil, false
	}
	return share.Release, true
}
