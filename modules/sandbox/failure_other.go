//go:build !unix

package sandbox

import "os"

// failureOf says why a worker ended, by its state and what it wrote to standard error.
func failureOf(state *os.ProcessState, said string) Failure { return failureOfExit(state, said) }
