package sqlite

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// dropPages drops the clean pages of f from the cache of the system.
func dropPages(f *os.File) error {
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("drop the cached pages of %s: %w", f.Name(), err)
	}
	return nil
}
