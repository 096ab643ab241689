//go:build !unix

package server

// fileLimit returns how many files and connections the process may have open.
func fileLimit() int { return unknownFileLimit }
