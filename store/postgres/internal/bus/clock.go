package bus

import (
	"sync"
	"sync/atomic"
	"time"

	"kontor/store/clock"
)

// Clock follows the clock of the server. It is wrong by at most half a round trip of the best recent answer, and by what
// the two clocks have drifted since. It never goes back within a process: when the server's clock was set back, Clock runs at
// half speed until the two agree again. When it was set forward, Clock jumps.
type Clock struct {
	time Time
	line atomic.Pointer[line]
	last atomic.Int64 // the latest time that was returned, so that goroutines agree on the order

	mu         sync.Mutex
	sampled    time.Duration // when the last sample was taken
	low, high  int64         // bounds of the difference between the server's clock and the monotonic one
	hasSamples bool
}

// line maps the monotonic clock to the server's.
type line struct {
	from       time.Duration // monotonic
	shows      int64         // Unix time in ns at from
	slowUntil  time.Duration // until then the clock runs at half speed
	difference int64         // between shown and monotonic time after slowUntil
}

func (l *line) at(now time.Duration) int64 {
	if now < l.slowUntil {
		return l.shows + int64(now-l.from)/2
	}
	return l.difference + int64(now)
}

// newClock returns a clock that shows the machine's time until it has a sample.
func newClock(t Time) *Clock {
	c := &Clock{time: t}
	c.line.Store(&line{difference: clock.System{}.Now().UnixNano() - int64(t.Now())})
	return c
}

// Now returns the time.
func (c *Clock) Now() time.Time {
	now := c.line.Load().at(c.time.Now())
	for {
		last := c.last.Load()
		if now <= last {
			return time.Unix(0, last)
		}
		if c.last.CompareAndSwap(last, now) {
			return time.Unix(0, now)
		}
	}
}

// drift is the largest relative difference in speed between two clocks that are both in order.
const drift = 1.0 / 5000

// sample corrects the clock: between the monotonic times sent and received, the server's clock showed shown.
func (c *Clock) sample(sent, received time.Duration, shown time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	low, high := shown.UnixNano()-int64(received), shown.UnixNano()-int64(sent)
	slack := int64(float64(received-c.sampled) * drift)
	if c.hasSamples && low <= c.high+slack && high >= c.low-slack {
		low, high = max(low, c.low-slack), min(high, c.high+slack)
	} // else a clock was set
	first := !c.hasSamples
	c.low, c.high, c.sampled, c.hasSamples = low, high, received, true
	before := c.line.Load()
	if first {
		c.line.Store(&line{difference: low + (high-low)/2})
		return
	}
	if before.difference < low || before.difference > high {
		c.steer(before, low+(high-low)/2)
	}
}

// steer changes to another difference without going back.
func (c *Clock) steer(before *line, difference int64) {
	now := c.time.Now()
	shows := before.at(now)
	next := &line{from: now, shows: shows, slowUntil: now, difference: difference}
	if ahead := shows - (difference + int64(now)); ahead > 0 {
		next.slowUntil += time.Duration(2 * ahead)
	}
	c.line.Store(next)
}
