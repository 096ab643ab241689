package store

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// ErrNotEmpty says that a backup would have to overwrite something.
var ErrNotEmpty = errors.New("a backup is only restored into an empty directory")

// Restore brings a backup back into o.Dir, which must be missing or empty; what an interrupted restore left does not count.
// The database is checked before it takes its name; when anything is wrong, nothing of it stays.
func Restore(ctx context.Context, file string, o Options) (CheckReport, error) {
	in, err := os.Open(file)
	if err != nil {
		return CheckReport{}, fmt.Errorf("%s cannot be read: %w", file, cause(err))
	}
	defer in.Close()
	if err := emptyDirectory(o.Dir); err != nil {
		return CheckReport{}, err
	}
	d, err := announceRestore(o.Dir)
	if err != nil {
		return CheckReport{}, err
	}
	defer d.close()
	if err := emptyDirectory(o.Dir); err != nil { // another restore may have been faster
		return CheckReport{}, err
	}
	report, err := d.restore(ctx, in, o.SecretKey)
	if err != nil {
		if !d.has(databaseName) {
			err = errors.Join(err, d.dropRestore(), os.Remove(d.file(lockName))) // made here: the directory was empty
		}
		return CheckReport{}, fmt.Errorf("restore %s: %w", file, err)
	}
	return report, nil
}

// announceRestore makes the file by which a start knows that a restore was interrupted, before anything else, and locks the
// directory.
func announceRestore(path string) (*directory, error) {
	if err := makeDirectory(path); err != nil {
		return nil, fmt.Errorf("data directory %s cannot be made: %w", path, cause(err))
	}
	sign := filepath.Join(path, restoring)
	f, err := os.OpenFile(sign, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	first := err == nil
	if first {
		err = f.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("data directory %s cannot be written: %w", path, cause(err))
	}
	d, err := openDirectory(path)
	if err != nil && first {
		err = errors.Join(err, os.Remove(sign))
	}
	return d, err
}

// dropRestore removes what a restore left that did not come to its end.
func (d *directory) dropRestore() error {
	err := d.removeDatabase(restoring)
	if removed := os.Remove(d.file(restoringKey)); !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}

// finishRestore gives the key of a restore its name where only the database has it yet.
func (d *directory) finishRestore() error {
	if !d.has(restoringKey) || d.has(keyName) {
		return nil
	}
	return d.rename(restoringKey, keyName)
}

func emptyDirectory(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", path, cause(err))
	}
	passedOver := []string{lockName, "lost+found", restoringKey}
	for _, ending := range besides {
		passedOver = append(passedOver, restoring+ending)
	}
	for _, e := range entries {
		if !slices.Contains(passedOver, e.Name()) {
			return fmt.Errorf("%s holds %s: %w", path, e.Name(), ErrNotEmpty)
		}
	}
	return nil
}

// restore unpacks, checks, and then gives the files their names: the database first, which decides that the restore
// happened. A process that opens the directory between the two names the key.
func (d *directory) restore(ctx context.Context, in io.Reader, givenKey string) (report CheckReport, err error) {
	if err := d.removeSideFiles(restoring); err != nil { // of an interrupted restore
		return report, err
	}
	if err := os.Remove(d.file(restoringKey)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return report, err
	}
	m, err := d.unpack(in)
	if err != nil {
		return report, err
	}
	key, err := d.restoredKey(givenKey)
	if err != nil {
		return report, err
	}
	if report, err = checkFile(ctx, d.file(restoring), key, nil); err != nil {
		return report, err
	}
	if report.Schema != m.Schema {
		return report, fmt.Errorf("%w: schema %d in the database, %d in the manifest", ErrCorrupt, report.Schema, m.Schema)
	}
	if err := d.removeSideFiles(restoring); err != nil { // of the check, which has read only
		return report, err
	}
	if err := syncDirectory(d.path); err != nil { // the key is there before the database counts
		return report, err
	}
	if err := d.rename(restoring, databaseName); err != nil {
		return report, err
	}
	if err := d.finishRestore(); err != nil {
		return report, err
	}
	return report, d.markRestored(d.file(databaseName), key, TimeOf(systemClock{}.Now()))
}

// restoredKey finds the key of a database that is being restored: the one given, else that of the backup; nil when there
// is none.
func (d *directory) restoredKey(given string) (*secrets, error) {
	if given == "" {
		text, err := os.ReadFile(d.file(restoringKey))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		given = string(text)
	}
	key, err := parseMasterKey(given)
	if err != nil {
		return nil, err
	}
	return newSecrets(key)
}

// unpack writes the files of a backup and compares the database with its manifest. Names it does not
// know are refused: a backup decides nothing about where files go.
func (d *directory) unpack(in io.Reader) (m manifest, err error) {
	archive := tar.NewReader(in)
	sum := ""
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return m, fmt.Errorf("%w: no backup of Kontor, or an incomplete one: %w", ErrCorrupt, err)
		}
		switch {
		case h.Typeflag != tar.TypeReg:
			err = fmt.Errorf("%w: unexpected %s", ErrCorrupt, h.Name)
		case h.Name == manifestName && h.Size <= maxSmallEntry:
			err = json.NewDecoder(archive).Decode(&m)
		case h.Name == keyName && h.Size <= maxSmallEntry:
			var key []byte
			if key, err = io.ReadAll(archive); err == nil {
				err = writeDurably(d.file(restoringKey), key)
			}
		case h.Name == databaseName && sum == "":
			sum, err = d.unpackDatabase(archive)
		default:
			err = fmt.Errorf("%w: unexpected %s", ErrCorrupt, h.Name)
		}
		if err != nil {
			return m, err
		}
	}
	switch {
	case m.Format == 0 || sum == "":
		return m, fmt.Errorf("%w: no backup of Kontor, or an incomplete one", ErrCorrupt)
	case m.Format != backupFormat:
		return m, fmt.Errorf("backup has format %d: %w", m.Format, ErrNewerSchema)
	case m.SHA256 != sum:
		return m, fmt.Errorf("%w: the database is not the one that was backed up", ErrCorrupt)
	}
	return m, nil
}

func (d *directory) unpackDatabase(in io.Reader) (sum string, err error) {
	out, err := os.OpenFile(d.file(restoring), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, hash), in)
	if err == nil {
		err = out.Sync()
	}
	return hex.EncodeToString(hash.Sum(nil)), errors.Join(err, out.Close())
}
