package hashing

import (
	"sync"
	"time"
)

// slowSum is the time above which a sum of low priority shows that other programs use the machine. Otherwise it takes some 22 ms of
// a core, and twice as long beside a busy server.
const slowSum = 500 * time.Millisecond

// priorities decides which sums have the priority of the server's own requests, and which a low one.
//
// At most one sum at once has normal priority, so that sign-ins never take more than the share of one process. A single sign-in has
// it: on a machine that other programs keep busy, a process of low priority may not run for seconds. While callers wait for slots,
// all sums have a low priority, so that a flood of sign-ins does not delay other requests. If even those are slow, the machine is busy
// with something else, and one sum at once has normal priority again, so that the queue moves.
type priorities struct {
	mutex   sync.Mutex
	normal  bool // a sum of normal priority is being computed
	starved bool // the latest sum of low priority was slow
}

// begin reports whether the next sum has normal priority. waiting reports whether callers wait for slots. The caller must call end.
func (p *priorities) begin(waiting bool) (normal bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	normal = !p.normal && (!waiting || p.starved)
	p.normal = p.normal || normal
	return normal
}

// end notes how long a sum took.
func (p *priorities) end(normal bool, took time.Duration) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if normal {
		p.normal = false
	} else {
		p.starved = took > slowSum
	}
}
