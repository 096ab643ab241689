package qrbill

import "golang.org/x/sys/unix"

// reserve reserves address space. The system allocates pages at their first use.
func reserve(size int) []byte {
	region, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		return nil // the engine then fails to start, and reports it
	}
	return region
}

func release(region []byte) {
	if region != nil {
		_ = unix.Munmap(region) // fails only for invalid arguments
	}
}
