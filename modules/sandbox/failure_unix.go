//go:build unix

package sandbox

import (
	"os"
	"syscall"
)

// failureOf says why a worker ended, by its state and what it wrote to standard error.
func failureOf(state *os.ProcessState, said string) Failure {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		switch status.Signal() {
		case syscall.SIGXCPU:
			return OutOfTime
		case syscall.SIGKILL:
			return Killed
		}
		return Crashed
	}
	return failureOfExit(state, said)
}
