package datadir

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockFile locks f for this process until it is closed. held reports whether another process has locked it. The locked byte
// lies after the text of the file, so that other processes can still read the text.
func lockFile(f *os.File) (held bool, err error) {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err = windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{Offset: 1 << 20})
	return errors.Is(err, windows.ERROR_LOCK_VIOLATION), err
}

// unlockFile does nothing: closing the file removes its lock.
func unlockFile(*os.File) error { return nil }
