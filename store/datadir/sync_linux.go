package datadir

import (
	"os"
	"syscall"
)

// SyncFile waits until the content of f is on the disk. It does not wait for the times of the file.
func SyncFile(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); err != syscall.EINTR {
			return err
		}
	}
}
