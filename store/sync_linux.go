package store

import (
	"os"
	"syscall"
)

// syncFile waits until what was written to f is on the disk, without the times of the file.
func syncFile(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); err != syscall.EINTR {
			return err
		}
	}
}
