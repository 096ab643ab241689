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

// unlockFile removes the lock. Closing alone would leave it while a child process, which another thread is just starting, has the
// open file, too.
func unlockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
