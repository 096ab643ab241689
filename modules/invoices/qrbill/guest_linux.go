package qrbill

import "golang.org/x/sys/unix"

// reserve takes address space from the system; memory comes with its first use.
func reserve(size int) []byte {
	region, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		return nil // the engine cannot start then, and says so
	}
	return region
}

func release(region []byte) {
	if region != nil {
		_ = unix.Munmap(region) // the only error is one of the arguments
	}
}
