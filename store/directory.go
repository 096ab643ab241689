package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	lockName = "kontor.lock"
	keyName  = "secret.key"

	dirMode  = 0o700
	fileMode = 0o600
)

// directory is the data directory, locked for this process.
type directory struct {
	path string
	lock *os.File
}

// openDirectory makes the data directory if it is missing and locks it.
func openDirectory(path string) (*directory, error) {
	if err := makeDirectory(path); err != nil {
		return nil, fmt.Errorf("data directory %s cannot be made: %w", path, cause(err))
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, fmt.Errorf("data directory %s cannot be written: %w", path, cause(err))
	}
	if held, err := lockFile(lock); err != nil {
		defer lock.Close()
		if held {
			return nil, fmt.Errorf("data directory %s is in use by %s: %w", path, holder(lock), ErrInUse)
		}
		return nil, fmt.Errorf("data directory %s cannot be locked: %w", path, err)
	}
	if err := lock.Truncate(0); err == nil {
		// Only the message of a second process reads it.
		fmt.Fprintf(lock, "%d\n", os.Getpid())
	}
	return &directory{path: path, lock: lock}, nil
}

// makeDirectory makes a directory that is missing, and those above it, so that they are there after a loss of power.
func makeDirectory(path string) error {
	path = filepath.Clean(path)
	if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return os.MkdirAll(path, dirMode) // says what is wrong with what is there
	}
	above := filepath.Dir(path)
	if err := makeDirectory(above); err != nil {
		return err
	}
	if err := os.Mkdir(path, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := syncDirectory(above); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil // a directory that may be passed through and not be read
}

// ErrInUse says that another process works on the data directory.
var ErrInUse = errors.New("one process per data directory")

// holder names the process that wrote the lock file.
func holder(lock *os.File) string {
	text, _ := io.ReadAll(io.LimitReader(lock, 20))
	if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
		return fmt.Sprintf("process %d", pid)
	}
	return "another process"
}

// cause leaves the path out of a file error, for messages that have it already.
func cause(err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

func (d *directory) file(name string) string { return filepath.Join(d.path, name) }

func (d *directory) close() error { return d.lock.Close() }

// exposed tells whether others than the owner may look into the directory.
func (d *directory) exposed() bool {
	info, err := os.Stat(d.path)
	return err == nil && info.Mode().Perm()&0o077 != 0
}

// findDatabase reports whether the database is still to be made. It refuses to begin a new bank where there are signs of
// another one.
func (d *directory) findDatabase() (fresh bool, err error) {
	path := d.file(databaseName)
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return false, fmt.Errorf("%s is a directory", path)
	case err == nil && info.Size() == 0:
		return false, emptyDatabase(path)
	case err == nil:
		return false, d.finishRestore()
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > 0 {
		return false, fmt.Errorf("%s is missing but its log %s-wal is there: put the database back, or restore a backup", path, databaseName)
	}
	if d.has(restoring) || d.has(restoringKey) {
		return false, d.missing()
	}
	if d.has(keyName) && !d.has(settingUp) {
		return false, fmt.Errorf("%s is missing but its key %s is there: put the database back, or restore a backup into an empty directory; "+
			"to begin an empty bank here, move the key away", path, keyName)
	}
	return true, nil
}

// missing says why there is no database, for a command that needs one.
func (d *directory) missing() error {
	if d.has(restoring) || d.has(restoringKey) {
		return fmt.Errorf("a restore into %s was interrupted: run it again (kontor restore FILE --data.dir %[1]s)", d.path)
	}
	if d.has(settingUp) {
		return fmt.Errorf("the first start in %s was cut off: start the server once", d.path)
	}
	return fmt.Errorf("%s cannot be read: %w", d.file(databaseName), fs.ErrNotExist)
}

// emptyDatabase says that a database has lost its content: a new one gets its name when it is whole.
func emptyDatabase(path string) error {
	return fmt.Errorf("%s is empty; restore a backup, or remove the file to begin anew: %w", path, ErrCorrupt)
}

// masterKey finds the master key: the one given, else the key file, which is made with a new database.
func (d *directory) masterKey(given string, fresh bool) ([]byte, error) {
	if given != "" {
		return parseMasterKey(given)
	}
	path := d.file(keyName)
	text, err := d.readKey()
	switch {
	case err == nil:
		key, err := parseMasterKey(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return key, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case !fresh:
		return nil, fmt.Errorf("%s is missing, and without its key the database cannot be used: %w", path, fs.ErrNotExist)
	}
	key := newMasterKey()
	if err := writeDurably(d.file(newKey), fmt.Appendf(nil, "%x\n", key)); err != nil {
		return nil, err
	}
	return key, d.rename(newKey, keyName)
}

// readKey reads the key file. Without the lock of the directory it may meet a restore that has named its database and not
// yet its key.
func (d *directory) readKey() ([]byte, error) {
	text, err := os.ReadFile(d.file(keyName))
	if !errors.Is(err, fs.ErrNotExist) || !d.has(databaseName) {
		return text, err
	}
	if text, restored := os.ReadFile(d.file(restoringKey)); restored == nil {
		return text, nil
	}
	return os.ReadFile(d.file(keyName))
}

// writeDurably writes a file that does not count before it is renamed. It is whole after a loss of power.
func writeDurably(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
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

func syncDirectory(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return ignoreUnsupported(d.Sync())
}

// ignoreUnsupported passes over systems that cannot sync a directory.
func ignoreUnsupported(err error) error {
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrInvalid) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}
