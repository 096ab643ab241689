//go:build !linux

package datadir

import "os"

// SyncFile waits until the content of f is on the disk.
func SyncFile(f *os.File) error { return f.Sync() }
