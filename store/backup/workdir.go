package backup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"kontor/store/datadir"
)

// workPrefix leads the names of the directories in which backups are prepared, beside their targets.
const workPrefix = ".kontor-backup-"

// workDirectory creates a directory for the temporary files of a backup, and deletes those that killed backups have left. A
// directory is in use while its lock is held; the lock ends with the process. done deletes the directory.
func workDirectory(parent string) (path string, done func(), err error) {
	sweepWorkDirectories(parent)
	const tries = 10 // another backup may delete the directory before it is locked
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
				os.RemoveAll(path) // the next backup deletes what stays
				lock.Close()
			}, nil
		}
	}
	return "", nil, datadir.ErrInUse
}

// lockWork locks a work directory. locked is false when another process has locked it or has just deleted it.
func lockWork(path string) (lock *os.File, locked bool, err error) {
	name := filepath.Join(path, datadir.Lock)
	lock, locked, err = datadir.TryLock(name)
	if lock == nil {
		return nil, false, err
	}
	if err != nil || !locked {
		lock.Close()
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

// sweepWorkDirectories deletes the work directories that no process has locked. The next backup tries again where that
// fails.
func sweepWorkDirectories(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return // creating the directory will report it
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
