//go:build unix

package server

import "syscall"

// fileLimit returns how many files and connections the process may have open, after raising the soft limit to the hard
// one. The Go runtime raises it as well, but does not promise to.
func fileLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return unknownFileLimit
	}
	if limit.Cur < limit.Max {
		raised := syscall.Rlimit{Cur: limit.Max, Max: limit.Max}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised); err == nil {
			limit = raised
		}
	}
	return int(min(uint64(limit.Cur), uint64(maxConnections+maxFileReserve))) //nolint:unconvert // signed on some systems
}
