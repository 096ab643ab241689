package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Kept is a small file that is replaced as a whole. Its directory is created with it, and need not be locked: processes that share it
// overwrite each other.
type Kept struct{ path string }

// Keep returns a file in a directory.
func Keep(dir, name string) Kept { return Kept{filepath.Join(dir, name)} }

// Name returns the path of the file.
func (k Kept) Name() string { return k.path }

// Read returns the content, or nil when there is no file.
func (k Kept) Read() ([]byte, error) {
	data, err := os.ReadFile(k.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, Cause(err)
}

// Write replaces the content. It is complete after a loss of power.
func (k Kept) Write(data []byte) error {
	if err := Make(filepath.Dir(k.path)); err != nil {
		return Cause(err)
	}
	next := fmt.Sprintf("%s.%d", k.path, os.Getpid())
	if err := Write(next, data); err != nil {
		return Cause(err)
	}
	if err := os.Rename(next, k.path); err != nil {
		return errors.Join(Cause(err), os.Remove(next))
	}
	return Sync(filepath.Dir(k.path))
}
