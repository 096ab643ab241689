//go:build unix

package commands

import (
	"errors"
	"syscall"

	"kontor/store/datadir"
)

// restrictSocket sets the mode of a socket before it has a name, so that it is never open to others.
func restrictSocket(_, _ string, c syscall.RawConn) error {
	var mode error
	err := c.Control(func(fd uintptr) { mode = syscall.Fchmod(int(fd), datadir.FileMode) })
	if errors.Is(mode, syscall.EINVAL) { // a system that sets the mode with the name; the directory is closed to others
		mode = nil
	}
	return errors.Join(err, mode)
}
