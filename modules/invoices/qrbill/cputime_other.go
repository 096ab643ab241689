//go:build !linux

package qrbill

import "time"

// threadClock tells the time that has passed: the time of a single thread is not
// to be had everywhere.
func threadClock() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}
