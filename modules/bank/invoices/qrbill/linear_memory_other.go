//go:build !linux

package qrbill

// reserve allocates the maximum size.
func reserve(size int) []byte { return make([]byte, size) }

// release does nothing: the garbage collector releases the memory.
func release([]byte) {}
