package sandbox

import (
	"os"
	"strings"
)

// failureOfExit returns the failure of a worker that exited, as opposed to one that a signal ended.
func failureOfExit(state *os.ProcessState, output string) Failure {
	switch {
	case state.ExitCode() == exitOutOfTime:
		return OutOfTime
	case strings.Contains(output, "out of memory"), strings.Contains(output, "allocate"): // the latter is a message of the race detector
		return OutOfMemory
	}
	return Crashed
}
