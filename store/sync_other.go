//go:build !linux

package store

import "os"

// syncFile waits until what was written to f is on the disk.
func syncFile(f *os.File) error { return f.Sync() }
