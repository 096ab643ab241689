package datadir

import (
	"errors"
	"io/fs"
	"os"
)

// Write writes a file that does not count before it is renamed. It is complete after a loss of power, or missing.
func Write(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, FileMode)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// Sync makes the names of the files in a directory durable.
func Sync(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return ignoreUnsupported(d.Sync())
}

// SyncClosed syncs a file that is not open.
func SyncClosed(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// ignoreUnsupported ignores the errors of systems that cannot sync a directory.
func ignoreUnsupported(err error) error {
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrInvalid) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// Cause returns the cause of a file error without its path, for messages that name the path already.
func Cause(err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	var link *os.LinkError // of a rename
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}
