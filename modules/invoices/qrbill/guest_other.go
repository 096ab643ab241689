//go:build !linux

package qrbill

// reserve makes room for the largest memory that a guest may have.
func reserve(size uint64) []byte { return make([]byte, size) }

// discard clears what was used of a region.
func discard(region []byte, used int) { clear(region[:used]) }
