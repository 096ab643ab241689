//go:build !linux || (!amd64 && !arm64)

package sandbox

import (
	"os"
	"time"
)

// isWorker is set in a worker.
var isWorker bool

// Confines reports whether workers are confined and have a lower priority on this system.
const Confines = false

// confine does nothing on this system: see the package comment.
func confine(int64) error {
	isWorker = true
	return nil
}

// apply does nothing on this system.
func (Priority) apply() error { return nil }

// closeInherited does nothing: on this system a child inherits only the descriptors that its parent passes.
func closeInherited() {}

// ProcessorTime returns 0: this system has no clock for it, so that only the deadline of the file counts.
func ProcessorTime() time.Duration { return 0 }

// LimitCPU ends the worker unless stop is called within a multiple of limit. It measures elapsed time, because this system
// has no timer for processor time. It cannot interrupt code that blocks the Go runtime; the caller's deadline does.
func LimitCPU(limit time.Duration) (stop func()) {
	if !isWorker {
		return func() {}
	}
	const loadFactor = 8 // other processes must not make a valid file exceed its limit
	timer := time.AfterFunc(loadFactor*limit, func() { os.Exit(exitOutOfTime) })
	return func() { timer.Stop() }
}
