// Package datadir holds the data directory: its lock, the names of its files, the master key, and durable writes.
package datadir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A first start, a restore, and the import and rotation of a key write under names of their own and rename last. A kill at any
// point leaves either nothing that counts or everything:
//
//	kontor.db.new         the database of a first start; created before the key, so that a key without a database and
//	                      without this file means that the database was lost
//	secret.key.new        the key of a first start or of an import, until it is complete
//	secret.key.next       the key of a rotation; renamed after the database has it
//	kontor.db.restoring   the database of a restore, until it was checked
//	secret.key.restoring  the key of a restore; renamed after the database
//	kontor.db.copying     the database of a copy from another engine, until it was compared with its source
const (
	Database = "kontor.db"
	Key      = "secret.key"
	Lock     = "kontor.lock"
	Primary  = "primary.json" // of a node on a database server: what it has seen of the database

	NewDatabase = Database + ".new"
	NewKey      = Key + ".new"
	NextKey     = Key + ".next"

	RestoringDatabase = Database + ".restoring"
	RestoringKey      = Key + ".restoring"

	CopyingDatabase = Database + ".copying"
)

// The modes of the directory and of the files in it: others than the owner have no access.
const (
	DirMode  = 0o700
	FileMode = 0o600
)

// ErrInUse says that another process works on the data directory.
var ErrInUse = errors.New("one process per data directory")

// Directory is a data directory. Open locks it for this process; At does not.
type Directory struct {
	path string
	lock *os.File // nil without the lock
}

// At returns a directory that is not locked, for reading beside the process that uses it.
func At(path string) *Directory { return &Directory{path: path} }

// Open creates the data directory if it is missing, and locks it. It returns ErrInUse when another process has locked it.
func Open(path string) (*Directory, error) {
	if err := Make(path); err != nil {
		return nil, fmt.Errorf("data directory %s cannot be created: %w", path, Cause(err))
	}
	name := filepath.Join(path, Lock)
	lock, locked, err := TryLock(name)
	switch {
	case err != nil && lock == nil:
		return nil, fmt.Errorf("data directory %s cannot be written: %w", path, Cause(err))
	case err != nil:
		return nil, errors.Join(fmt.Errorf("data directory %s cannot be locked: %w", path, err), lock.Close())
	case !locked:
		defer lock.Close()
		return nil, fmt.Errorf("data directory %s is in use by %s: %w", path, holder(lock), ErrInUse)
	}
	if err := lock.Truncate(0); err == nil {
		// Only the message of a second process reads it.
		fmt.Fprintf(lock, "%d\n", os.Getpid())
	}
	return &Directory{path: path, lock: lock}, nil
}

// TryLock opens a lock file, creating it if necessary, and locks it for this process until it is closed. locked is false
// when another process holds the lock. The file is nil only when it cannot be opened.
func TryLock(name string) (lock *os.File, locked bool, err error) {
	if lock, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE, FileMode); err != nil {
		return nil, false, err
	}
	held, err := lockFile(lock)
	if held {
		return lock, false, nil
	}
	return lock, err == nil, err
}

// Make creates a missing directory and its missing parents. They survive a loss of power.
func Make(path string) error {
	path = filepath.Clean(path)
	if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return os.MkdirAll(path, DirMode) // reports a file in the place of the directory
	}
	parent := filepath.Dir(path)
	if err := Make(parent); err != nil {
		return err
	}
	if err := os.Mkdir(path, DirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := Sync(parent); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil // the parent may be entered and not be read
}

// holder names the process that wrote the lock file.
func holder(lock *os.File) string {
	text, _ := io.ReadAll(io.LimitReader(lock, 20))
	if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
		return fmt.Sprintf("process %d", pid)
	}
	return "another process"
}

// Path returns the path of the directory.
func (d *Directory) Path() string { return d.path }

// File returns the path of a file in the directory.
func (d *Directory) File(name string) string { return filepath.Join(d.path, name) }

// Has reports whether the directory holds a file.
func (d *Directory) Has(name string) bool {
	_, err := os.Lstat(d.File(name))
	return err == nil
}

// Exposed reports whether others than the owner may read the directory.
func (d *Directory) Exposed() bool {
	info, err := os.Stat(d.path)
	return err == nil && info.Mode().Perm()&0o077 != 0
}

// Rename renames a file durably.
func (d *Directory) Rename(from, to string) error {
	if err := os.Rename(d.File(from), d.File(to)); err != nil {
		return err
	}
	return Sync(d.path)
}

// Remove deletes files. Missing ones are no error.
func (d *Directory) Remove(names ...string) error {
	var failed error
	for _, name := range names {
		if err := os.Remove(d.File(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// Close releases the lock.
func (d *Directory) Close() error { return errors.Join(unlockFile(d.lock), d.lock.Close()) }

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

// SameFile reports whether two identities may be of one file. One that is unknown may be of any file. One may lack the time of the
// creation, because a later version of the system says it.
func SameFile(a, b string) bool {
	if a == "" || b == "" || a == b {
		return true
	}
	numberA, createdA, _ := strings.Cut(a, "-")
	numberB, createdB, _ := strings.Cut(b, "-")
	return numberA == numberB && (createdA == "" || createdB == "")
}

// Other returns the name of a file in a directory, which may be missing, that is not among the given ones; empty: there is none.
func Other(path string, given ...string) (name string, err error) {
	entries, err := os.ReadDir(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s cannot be read: %w", path, Cause(err))
	}
	for _, e := range entries {
		if !slices.Contains(given, e.Name()) && e.Name() != Lock && e.Name() != "lost+found" {
			return e.Name(), nil
		}
	}
	return "", nil
}
