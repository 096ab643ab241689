package qrbill

import "syscall"

// reserve takes address space from the system; memory comes with its first use.
func reserve(size uint64) []byte {
	region, err := syscall.Mmap(-1, 0, int(size), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
	if err != nil {
		return nil
	}
	return region
}

// discard gives the memory of a region back to the system. The address space
// stays: whatever still pointed there would read zeros instead of crashing.
func discard(region []byte, _ int) {
	if syscall.Madvise(region, syscall.MADV_DONTNEED) != nil {
		clear(region)
	}
}
