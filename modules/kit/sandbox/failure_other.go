//go:build !unix

package sandbox

import "os"

// failureOf returns the failure of a worker by its state and its error output.
func failureOf(state *os.ProcessState, output string) Failure { return failureOfExit(state, output) }
