package backup

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"kontor/store/audittrail"
	"kontor/store/datadir"
	"kontor/store/inspect"
	"kontor/store/sealing"
	"kontor/store/sqlite"
)

// ErrOtherKey says that an import would have to replace another master key.
var ErrOtherKey = errors.New("the data directory holds another master key")

// ReadKey returns the master key of a database as a key file holds it: the given key, else the key of the data directory. It
// returns sealing.ErrWrongKey when the database was made with another key.
func ReadKey(ctx context.Context, from inspect.Source) ([]byte, error) {
	d := datadir.At(from.Dir)
	if !d.Has(datadir.Database) {
		return nil, sqlite.Missing(d)
	}
	candidates, err := existingKeys(d, from)
	if err != nil {
		return nil, err
	}
	key, err := chooseKey(ctx, d.File(datadir.Database), candidates)
	if err != nil {
		return nil, err
	}
	return datadir.KeyText(key), nil
}

// ExportKey writes the master key of a database to a new file. It works beside a process that uses the database. An existing
// file is fs.ErrExist.
func ExportKey(ctx context.Context, from inspect.Source, file string) error {
	text, err := ReadKey(ctx, from)
	if err != nil {
		return err
	}
	work, done, err := workDirectory(filepath.Dir(file))
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", file, datadir.Cause(err))
	}
	defer done()
	whole := filepath.Join(work, datadir.Key)
	if err := datadir.Write(whole, text); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return publish(whole, file)
}

// ImportKey puts a master key into a data directory whose database has none. It changes nothing when the key is not the one
// of the database (sealing.ErrWrongKey), the directory holds another key (ErrOtherKey), or a process uses the directory
// (datadir.ErrInUse). To import the present key again is no error. A kill at any point leaves no key or the whole key.
func ImportKey(ctx context.Context, dir, text string) (err error) {
	key, err := sealing.ParseMasterKey(text)
	if err != nil {
		return err
	}
	if at := datadir.At(dir); !at.Has(datadir.Database) { // locking would create the directory
		return sqlite.Missing(at)
	}
	d, err := datadir.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if _, err := chooseKey(ctx, d.File(datadir.Database), [][]byte{key}); err != nil {
		return err
	}
	if err := sqlite.FinishRestore(d); err != nil {
		return err
	}
	if d.Has(datadir.Key) {
		present, err := d.MasterKey("", false)
		if err != nil || subtle.ConstantTimeCompare(present, key) == 0 {
			return fmt.Errorf("%w: move %s away first", ErrOtherKey, d.File(datadir.Key))
		}
		return nil
	}
	if err := datadir.Write(d.File(datadir.NewKey), datadir.KeyText(key)); err != nil {
		return fmt.Errorf("write %s: %w", d.File(datadir.NewKey), datadir.Cause(err))
	}
	return d.Rename(datadir.NewKey, datadir.Key)
}

// existingKeys returns the master keys that the database may have. It returns sealing.ErrNoKey when there is none.
func existingKeys(d *datadir.Directory, from inspect.Source) ([][]byte, error) {
	keys, err := d.MasterKeys(from.SecretKey, from.PreviousKey, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", d.Path(), sealing.ErrNoKey)
	}
	return keys, err
}

// chooseKey returns the master key that a database, which may be in use, was made with. It returns sealing.ErrWrongKey when no
// candidate is the key.
func chooseKey(ctx context.Context, path string, candidates [][]byte) ([]byte, error) {
	keys, err := sealing.New(candidates[0], candidates[1:]...)
	if err != nil {
		return nil, err
	}
	f, err := sqlite.OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Begin(ctx); err != nil {
		return nil, err
	}
	if err := audittrail.CheckKey(ctx, f, keys, path); err != nil {
		return nil, err
	}
	return candidates[keys.Chosen()], nil
}
