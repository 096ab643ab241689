package clock

import (
	"sync/atomic"
	"time"
)

// Shifted is a clock that shows another time than the one below it: for the sandbox, whose clock developers move, and for demo
// data, which is created as if in the past. It may be used and moved by several goroutines.
type Shifted struct {
	Below  Clock // nil: the clock of the machine
	offset atomic.Int64
	held   atomic.Pointer[time.Time] // nil: the clock runs
}

// Now returns the time of the clock below, plus the offset; while the clock is held, the time at which it stands.
func (c *Shifted) Now() time.Time {
	if at := c.held.Load(); at != nil {
		return *at
	}
	return c.below().Add(c.Offset())
}

// Hold stops the clock at a time, until [Shifted.Release].
func (c *Shifted) Hold(at time.Time) { c.held.Store(&at) }

// Release lets the clock run again, from the time at which it stands.
func (c *Shifted) Release() {
	if at := c.held.Load(); at != nil {
		c.SetOffset(at.Sub(c.below()))
		c.held.Store(nil)
	}
}

// Offset returns by how much the clock is ahead of the one below; negative: behind.
func (c *Shifted) Offset() time.Duration { return time.Duration(c.offset.Load()) }

// SetOffset moves the clock: from now on it is ahead by d.
func (c *Shifted) SetOffset(d time.Duration) { c.offset.Store(int64(d)) }

func (c *Shifted) below() time.Time {
	if c.Below == nil {
		return System{}.Now()
	}
	return c.Below.Now()
}
