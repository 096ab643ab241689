package datadir

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"kontor/store/sealing"
)

// MasterKey returns the master key: the given one if it is not empty, else that of the key file. With fresh it creates a
// missing key file; otherwise a missing file is fs.ErrNotExist.
func (d *Directory) MasterKey(given string, fresh bool) ([]byte, error) {
	if given != "" {
		return sealing.ParseMasterKey(given)
	}
	path := d.File(Key)
	text, err := d.ReadKey()
	switch {
	case err == nil:
		key, err := sealing.ParseMasterKey(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return key, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case !fresh:
		return nil, fmt.Errorf("%s is missing, and without its key the database cannot be used; run \"kontor key import FILE\", or set KONTOR_SECRET_KEY: %w", path, fs.ErrNotExist)
	}
	key := sealing.NewMasterKey()
	if err := Write(d.File(NewKey), KeyText(key)); err != nil {
		return nil, err
	}
	return key, d.Rename(NewKey, Key)
}

// MasterKeys returns the master keys that the database may have, the likeliest first: the given one and the previous one, or
// those of the key file and of a rotation that was interrupted. See MasterKey for fresh.
func (d *Directory) MasterKeys(given, previous string, fresh bool) ([][]byte, error) {
	if given != "" {
		return GivenKeys(given, previous)
	}
	first, err := d.MasterKey("", fresh)
	if err != nil {
		return nil, err
	}
	keys := [][]byte{first}
	next, err := d.ReadNextKey()
	if err != nil {
		return nil, err
	}
	if next != nil {
		keys = append(keys, next)
	}
	// A rotation may have renamed the next key between the two reads.
	if again, err := d.MasterKey("", false); err == nil && !bytes.Equal(again, first) {
		keys = append(keys, again)
	}
	return keys, nil
}

// GivenKeys returns master keys that the operator keeps, the present one first. previous may be empty.
func GivenKeys(given, previous string) ([][]byte, error) {
	first, err := sealing.ParseMasterKey(given)
	if err != nil {
		return nil, err
	}
	if previous == "" {
		return [][]byte{first}, nil
	}
	former, err := sealing.ParseMasterKey(previous)
	if err != nil {
		return nil, fmt.Errorf("KONTOR_SECRET_KEY_PREVIOUS: %w", err)
	}
	return [][]byte{first, former}, nil
}

// ReadNextKey returns the key of a rotation that is not complete, or nil. An incomplete file counts as none.
func (d *Directory) ReadNextKey() ([]byte, error) {
	text, err := os.ReadFile(d.File(NextKey))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	key, err := sealing.ParseMasterKey(string(text))
	if err != nil {
		return nil, nil //nolint:nilerr // the rotation was killed before the database could have the key
	}
	return key, nil
}

// WriteNextKey writes the key of a rotation durably, beside the present one.
func (d *Directory) WriteNextKey(key []byte) error {
	if err := Write(d.File(NextKey), KeyText(key)); err != nil {
		return fmt.Errorf("write %s: %w", d.File(NextKey), Cause(err))
	}
	return Sync(d.path)
}

// KeyText returns a master key as key files hold it.
func KeyText(key []byte) []byte { return fmt.Appendf(nil, "%x\n", key) }

// ReadKey reads the key file. Without the lock of the directory, a restore may have renamed its database and not yet its
// key; the key of the restore counts then.
func (d *Directory) ReadKey() ([]byte, error) {
	text, err := os.ReadFile(d.File(Key))
	if !errors.Is(err, fs.ErrNotExist) || !d.Has(Database) {
		return text, err
	}
	if text, restored := os.ReadFile(d.File(RestoringKey)); restored == nil {
		return text, nil
	}
	return os.ReadFile(d.File(Key))
}

// ExistingKeys returns the keys of the given master keys, or of the key files. It creates none and returns nil when there is
// no key. The database must recognise its key among them.
func (d *Directory) ExistingKeys(given, previous string) (*sealing.Keys, error) {
	keys, err := d.MasterKeys(given, previous, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return sealing.New(keys[0], keys[1:]...)
}

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
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if link, ok := errors.AsType[*os.LinkError](err); ok { // of a rename
		return link.Err
	}
	return err
}
