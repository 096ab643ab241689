//go:build !linux

package postgres

import "syscall"

// boundSending does nothing: the system's own limit applies.
func boundSending(_, _ string, _ syscall.RawConn) error { return nil }
