package qrbill

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadClock gives a function that tells how long the calling thread has been
// computing. It may be called from any thread; the caller must have locked its
// goroutine to the thread meanwhile.
func threadClock() func() time.Duration {
	// The clock of another thread is named by its number, with the bits for "per
	// thread" and "scheduler" (clock_getcpuclockid in the C library).
	const perThread, scheduler = 4, 2
	clock := int32(^unix.Gettid()<<3 | perThread | scheduler)
	return func() time.Duration {
		var t unix.Timespec
		if unix.ClockGettime(clock, &t) != nil {
			return 1 << 62 // without a clock, time counts as used up
		}
		return time.Duration(t.Nano())
	}
}
