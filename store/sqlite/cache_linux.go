package sqlite

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// dropPages makes the system forget the pages of f that it has in its cache and the disk has, too.
func dropPages(f *os.File) error {
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("drop the cached pages of %s: %w", f.Name(), err)
	}
	return nil
}
