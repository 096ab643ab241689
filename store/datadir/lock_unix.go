//go:build unix

package datadir

import (
	"errors"
	"os"
	"syscall"
)

// lockFile locks f for this process until it is closed. held reports whether another process has locked it.
func lockFile(f *os.File) (held bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	return errors.Is(err, syscall.EWOULDBLOCK), err
}
