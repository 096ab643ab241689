package bus

import "time"

// Time is a monotonic clock.
type Time interface {
	// Now returns the time since a moment that stays the same. It never goes back.
	Now() time.Duration
	// AfterFunc calls f on a goroutine of its own when d has passed, unless stop is called before.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// machineTime is the monotonic clock of the machine. It runs while the process is stopped, too.
type machineTime struct{ start time.Time }

func (m machineTime) Now() time.Duration { return time.Since(m.start) }

func (machineTime) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(d, f).Stop
}
