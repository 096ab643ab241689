package datadir

import (
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

// ExistingKeys returns the keys of the given master key, or of the key file. It creates none and returns nil when there is
// no key.
func (d *Directory) ExistingKeys(given string) (*sealing.Keys, error) {
	key, err := d.MasterKey(given, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return sealing.New(key)
}
