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
)

// restoring is the name of the database until it is found whole.
const restoring = databaseName + ".restoring"

// ErrNotEmpty says that a backup would have to overwrite something.
var ErrNotEmpty = errors.New("a backup is only restored into an empty directory")

// Restore brings a backup back into o.Dir, which must be missing or empty. The database is checked
// before it takes its name; when anything is wrong, nothing of it stays.
func Restore(ctx context.Context, file string, o Options) (CheckReport, error) {
	in, err := os.Open(file)
	if err != nil {
		return CheckReport{}, fmt.Errorf("%s cannot be read: %w", file, cause(err))
	}
	defer in.Close()
	if err := emptyDirectory(o.Dir); err != nil {
		return CheckReport{}, err
	}
	d, err := openDirectory(o.Dir)
	if err != nil {
		return CheckReport{}, err
	}
	defer d.close()
	report, err := d.restore(ctx, in, o.SecretKey)
	if err != nil {
		for _, name := range []string{restoring, restoring + "-wal", restoring + "-shm", markName, keyName, lockName} {
			os.Remove(d.file(name)) // made here: the directory was empty
		}
		return CheckReport{}, fmt.Errorf("restore %s: %w", file, err)
	}
	return report, nil
}

func emptyDirectory(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", path, cause(err))
	}
	for _, e := range entries {
		if e.Name() != lockName && e.Name() != "lost+found" {
			return fmt.Errorf("%s holds %s: %w", path, e.Name(), ErrNotEmpty)
		}
	}
	return nil
}

// restore unpacks, checks, and gives the database its name last.
func (d *directory) restore(ctx context.Context, in io.Reader, givenKey string) (report CheckReport, err error) {
	m, err := d.unpack(in)
	if err != nil {
		return report, err
	}
	key, err := d.existingKey(givenKey)
	if err != nil {
		return report, err
	}
	if report, err = checkFile(ctx, d.file(restoring), key); err != nil {
		return report, err
	}
	if report.Schema != m.Schema {
		return report, fmt.Errorf("%w: schema %d in the database, %d in the manifest", ErrCorrupt, report.Schema, m.Schema)
	}
	if err := d.markRestored(d.file(restoring), key, TimeOf(systemClock{}.Now())); err != nil {
		return report, err
	}
	if err := os.Rename(d.file(restoring), d.file(databaseName)); err != nil {
		return report, err
	}
	return report, syncDirectory(d.path)
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
				err = writeDurably(d.file(keyName), key)
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
	out, err := os.OpenFile(d.file(restoring), os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
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
