package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// workPrefix begins the names of the directories in which backups are prepared, beside their targets.
const workPrefix = ".kontor-backup-"

// workDirectory makes a directory for the temporary files of a backup, and removes those that killed backups have left. A
// directory is in use as long as its lock is held, which ends with the process. done removes it.
func workDirectory(parent string) (path string, done func(), err error) {
	sweepWorkDirectories(parent)
	const tries = 10 // a sweep of another backup may be faster than our lock
	for range tries {
		if path, err = os.MkdirTemp(parent, workPrefix); err != nil {
			return "", nil, err
		}
		lock, locked, err := lockWork(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", nil, errors.Join(err, os.RemoveAll(path))
		}
		if locked {
			return path, func() {
				os.RemoveAll(path) // what stays is swept by the next backup
				lock.Close()
			}, nil
		}
	}
	return "", nil, ErrInUse
}

// lockWork locks a work directory. It is not locked when another process holds it or has just removed it.
func lockWork(path string) (lock *os.File, locked bool, err error) {
	name := filepath.Join(path, lockName)
	if lock, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE, fileMode); err != nil {
		return nil, false, err
	}
	held, err := lockFile(lock)
	if err != nil {
		lock.Close()
		if held {
			err = nil
		}
		return nil, false, err
	}
	ours, err := lock.Stat()
	if err == nil {
		var there fs.FileInfo
		if there, err = os.Stat(name); err == nil && os.SameFile(ours, there) {
			return lock, true, nil
		}
	}
	lock.Close()
	return nil, false, err
}

// sweepWorkDirectories removes the work directories that no process holds. What cannot be removed is left to the next one.
func sweepWorkDirectories(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return // the caller notices
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), workPrefix) {
			continue
		}
		path := filepath.Join(parent, e.Name())
		if lock, locked, err := lockWork(path); err == nil && locked {
			os.RemoveAll(path)
			lock.Close()
		}
	}
}
