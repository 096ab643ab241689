//go:build !linux || (!amd64 && !arm64)

package sandbox

import (
	"os"
	"time"
)

// isWorker is set in a worker.
var isWorker bool

// confine has nothing to take away here: see the package comment.
func confine(int64) error {
	isWorker = true
	return nil
}

// lowerPriority leaves the priority as it is.
func lowerPriority() error { return nil }

// closeInherited has nothing to do: only descriptors for which the parent asks are inherited.
func closeInherited() {}

// LimitCPU ends the worker when more time passes than the limit before stop is called. It measures by the clock: the
// processor time of a process has no timer here. What blocks the Go runtime is left to the caller's deadline.
func LimitCPU(limit time.Duration) (stop func()) {
	if !isWorker {
		return func() {}
	}
	const patience = 8 // other work on the machine must not make a good file look bad
	timer := time.AfterFunc(patience*limit, func() { os.Exit(exitOutOfTime) })
	return func() { timer.Stop() }
}
