//go:build !linux

package qrbill

// reserve makes room for the largest memory that a guest may have.
func reserve(size int) []byte { return make([]byte, size) }

// release leaves the memory to the garbage collector.
func release([]byte) {}
