//go:build unix

package sandbox

import (
	"os"
	"syscall"
)

// failureOf returns the failure of a worker by its state and its error output.
func failureOf(state *os.ProcessState, output string) Failure {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		switch status.Signal() {
		case syscall.SIGXCPU:
			return OutOfTime
		case syscall.SIGKILL:
			return Killed
		}
		return Crashed
	}
	return failureOfExit(state, output)
}
