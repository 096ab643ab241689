// Package backup copies a database into one file, and restores it from there. It exports and imports the master key.
//
// A backup is one tar file with
//
//	manifest.json   the format, and the SHA-256 of the database
//	secret.key      the master key, only with Options.WithKey
//	kontor.db       one state of the database, without a log
//
// A database that is restored from a backup without the key needs the key from elsewhere: ImportKey puts it into the data
// directory, or inspect.Source.SecretKey holds it. A backup with the key restores everything on another machine, and signs in
// as anybody there: keep it as safe as the key.
package backup

import (
	"archive/tar"
	"bytes"
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

	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/inspect"
	"kontor/store/sqlite"
)

const (
	manifestName  = "manifest.json"
	format        = 1
	maxSmallEntry = 1 << 20 // bytes of the manifest, and of the key
)

// manifest describes a backup.
type manifest struct {
	Format    int        `json:"format"`
	CreatedAt clock.Time `json:"created_at"`
	Schema    int64      `json:"schema"`
	Bytes     int64      `json:"bytes"`
	SHA256    string     `json:"sha256"`
	WithKey   bool       `json:"with_key"`
}

// Options say what goes into a backup.
type Options struct {
	// WithKey puts the master key into the backup: the given key of the source, else the key of its directory.
	WithKey bool
}

// existsError reports that the file of a new backup exists. It is fs.ErrExist.
type existsError string

func (e existsError) Error() string { return string(e) + " exists already; name a new file" }

// Is implements the comparison of errors.Is.
func (existsError) Is(target error) bool { return target == fs.ErrExist }

// Create writes one state of a database to a new file. It works beside a process that uses the database, and does not delay
// its writes. An existing file is fs.ErrExist.
func Create(ctx context.Context, from inspect.Source, file string, o Options) error {
	d := datadir.At(from.Dir)
	if !d.Has(datadir.Database) {
		return sqlite.Missing(d)
	}
	if o.WithKey {
		if _, err := ReadKey(ctx, from); err != nil {
			return err
		}
	}
	if _, err := os.Lstat(file); err == nil {
		return existsError(file)
	}
	work, done, err := workDirectory(filepath.Dir(file))
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", file, datadir.Cause(err))
	}
	defer done()
	whole, err := write(ctx, from, o, work)
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return publish(whole, file)
}

// write prepares the backup in a work directory and returns its path.
func write(ctx context.Context, from inspect.Source, o Options, work string) (whole string, err error) {
	d := datadir.At(from.Dir)
	if err := sqlite.SyncMark(d); err != nil {
		return "", err
	}
	copied := filepath.Join(work, datadir.Database)
	m := manifest{Format: format, CreatedAt: from.Now(), WithKey: o.WithKey}
	key, err := copyWithKey(ctx, d, from, o.WithKey, &m, copied)
	if err != nil {
		return "", err
	}
	if m.Bytes, m.SHA256, err = digestFile(copied); err != nil {
		return "", err
	}
	whole = filepath.Join(work, "backup.tar")
	if err := writeTar(whole, m, key, copied); err != nil {
		return "", err
	}
	return whole, nil
}

// copyWithKey copies the database and returns the master key of the copy, if it is wanted. A rotation may replace the key
// meanwhile: the keys from before the copy and after it are candidates.
func copyWithKey(ctx context.Context, d *datadir.Directory, from inspect.Source, wanted bool, m *manifest, copied string) (key []byte, err error) {
	var candidates [][]byte
	if wanted {
		if candidates, err = existingKeys(d, from); err != nil {
			return nil, err
		}
	}
	if m.Schema, err = copyDatabase(ctx, d.File(datadir.Database), copied); err != nil || !wanted {
		return nil, err
	}
	after, err := existingKeys(d, from)
	if err != nil {
		return nil, err
	}
	if key, err = chooseKey(ctx, copied, append(candidates, after...)); err != nil {
		return nil, err
	}
	return datadir.KeyText(key), nil
}

// publish renames a complete backup durably. It does not replace an existing file.
func publish(whole, file string) error {
	// A link, unlike a rename, fails when the file was created in the meantime.
	if err := os.Link(whole, file); errors.Is(err, fs.ErrExist) {
		return existsError(file)
	} else if err != nil {
		if err := os.Rename(whole, file); err != nil { // a file system without links
			return fmt.Errorf("write %s: %w", file, err)
		}
	}
	return datadir.Sync(filepath.Dir(file))
}

// copyDatabase writes one state of the database to a new file and returns the version of its schema.
func copyDatabase(ctx context.Context, from, to string) (schema int64, err error) {
	f, err := sqlite.OpenFile(from)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if schema, err = f.Schema(); err != nil {
		return 0, err
	}
	if err := os.WriteFile(to, nil, datadir.FileMode); err != nil {
		return 0, err
	}
	return schema, f.CopyTo(ctx, to)
}

// digestFile returns the size and the SHA-256 of a file.
func digestFile(path string) (size int64, sum string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	hash := sha256.New()
	if size, err = io.Copy(hash, f); err != nil {
		return 0, "", err
	}
	return size, hex.EncodeToString(hash.Sum(nil)), nil
}

// writeTar writes the backup and syncs it.
func writeTar(path string, m manifest, key []byte, database string) (err error) {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, datadir.FileMode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	described, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	in, err := os.Open(database)
	if err != nil {
		return err
	}
	defer in.Close()

	w := tar.NewWriter(out)
	put := func(name string, size int64, content io.Reader) error {
		h := &tar.Header{Name: name, Mode: datadir.FileMode, Size: size, ModTime: m.CreatedAt.Std(), Format: tar.FormatPAX}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err := io.Copy(w, content)
		return err
	}
	if err := put(manifestName, int64(len(described)), bytes.NewReader(described)); err != nil {
		return err
	}
	if key != nil {
		if err := put(datadir.Key, int64(len(key)), bytes.NewReader(key)); err != nil {
			return err
		}
	}
	if err := put(datadir.Database, m.Bytes, in); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return out.Sync()
}
