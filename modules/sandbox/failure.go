package sandbox

import (
	"os"
	"strings"
)

// failureOfExit says why a worker ended that no signal ended.
func failureOfExit(state *os.ProcessState, said string) Failure {
	switch {
	case state.ExitCode() == exitOutOfTime:
		return OutOfTime
	case strings.Contains(said, "out of memory"), strings.Contains(said, "allocate"): // the last is what the race detector says
		return OutOfMemory
	}
	return Crashed
}
