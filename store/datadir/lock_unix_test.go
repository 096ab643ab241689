//go:build unix

package datadir

import (
	"syscall"
	"testing"
)

// A child process that is just being started has all open files of its parent. It must not keep the lock after the parent has closed
// the directory.
func TestClose_ReleasesTheLockOfDuplicates(t *testing.T) {
	path := t.TempDir()
	first, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	duplicate, err := syscall.Dup(int(first.lock.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(duplicate)
	if _, err := Open(path); err == nil {
		t.Fatal("two processes may use the directory at once")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}
