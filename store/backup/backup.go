// Package backup copies a database into a compressed file, whole or as what has changed since an earlier file, and restores it
// from there. It exports and imports the master key.
//
// A backup is a tar file, compressed with zstd, with
//
//	manifest.json   what the file holds, see manifest
//	secret.key      the master key, only with Options.WithKey
//	kontor.db       one state of the database, without a log; or
//	kontor.pages    of an increment: the pages that have changed since its base, each after its number (8 bytes, big endian)
//	kontor.sums     for each page of the state, the first 16 bytes of its SHA-256; empty in what a continuous backup ships
//
// A database that is restored from a backup without the key needs the key from elsewhere: ImportKey puts it into the data
// directory, or inspect.Source.SecretKey holds it. A backup with the key restores everything on another machine, and signs in
// as anybody there: keep it as safe as the key.
package backup

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"kontor/store/audittrail"
	"kontor/store/datadir"
	"kontor/store/inspect"
	"kontor/store/sealing"
	"kontor/store/sqlite"
)

// Options say what goes into a backup.
type Options struct {
	// WithKey puts the master key into the backup: the given key of the source, else the key of its directory.
	WithKey bool
	// Base is an earlier backup of the same database. The new one then holds only the pages that have changed since. A restore
	// needs both.
	Base string
	// Progress is called after each part with the bytes of the database that were read, and with all; nil for none.
	Progress func(done, total int64)
}

// Result says what was written.
type Result struct {
	Database   int64 // bytes of the database
	Pages      int64 // of the database
	Changed    int64 // of these, in the backup
	Compressed int64 // bytes of the backup
}

// existsError reports that the file of a new backup exists. It is fs.ErrExist.
type existsError string

func (e existsError) Error() string { return string(e) + " exists already; name a new file" }

// Is implements the comparison of errors.Is.
func (existsError) Is(target error) bool { return target == fs.ErrExist }

// Create writes one state of a database to a new file. It works beside a process that uses the database, and does not delay
// its writes. An existing file is fs.ErrExist.
func Create(ctx context.Context, from inspect.Source, file string, o Options) (Result, error) {
	if d := datadir.At(from.Dir); !d.Has(datadir.Database) {
		return Result{}, sqlite.Missing(d)
	}
	if _, err := os.Lstat(file); err == nil {
		return Result{}, existsError(file)
	}
	work, done, err := workDirectory(filepath.Dir(file))
	if err != nil {
		return Result{}, fmt.Errorf("%s cannot be written: %w", file, datadir.Cause(err))
	}
	defer done()
	whole := filepath.Join(work, "backup")
	result, err := writeFile(ctx, from, whole, o)
	if err != nil {
		return Result{}, fmt.Errorf("write %s: %w", file, err)
	}
	return result, publish(whole, file)
}

func writeFile(ctx context.Context, from inspect.Source, path string, o Options) (result Result, err error) {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, datadir.FileMode)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if result, err = Write(ctx, from, out, o); err != nil {
		return Result{}, err
	}
	return result, out.Sync()
}

// Write writes one state of a database, as Create does, to a stream. After an error the stream holds no backup.
func Write(ctx context.Context, from inspect.Source, out io.Writer, o Options) (Result, error) {
	d := datadir.At(from.Dir)
	if !d.Has(datadir.Database) {
		return Result{}, sqlite.Missing(d)
	}
	base, err := readBase(o.Base)
	if err != nil {
		return Result{}, err
	}
	var candidates [][]byte
	if o.WithKey {
		if candidates, err = existingKeys(d, from); err != nil {
			return Result{}, err
		}
	}
	if err := sqlite.SyncMark(d); err != nil {
		return Result{}, err
	}
	f, err := sqlite.OpenFile(d.File(datadir.Database))
	if err != nil {
		return Result{}, err
	}
	defer f.Close()
	if err := f.Begin(ctx); err != nil {
		return Result{}, err
	}
	m := manifest{Format: format, ID: rand.Text(), CreatedAt: from.Now(), WithKey: o.WithKey}
	if m.Schema, err = f.Schema(); err != nil {
		return Result{}, err
	}
	if m.Extent, err = f.Extent(ctx); err != nil {
		return Result{}, err
	}
	w, err := newWriter(out)
	if err != nil {
		return Result{}, err
	}
	s := state{pages: f, manifest: m, progress: o.Progress}
	if o.WithKey {
		if s.key, err = keyOfState(ctx, d, f, from, candidates); err != nil {
			return Result{}, err
		}
	}
	if base != nil {
		if err := s.compare(ctx, base); err != nil {
			return Result{}, err
		}
	}
	return s.write(ctx, w)
}

// keyOfState returns the master key of a state, as a key file holds it. A rotation may replace the key meanwhile: the keys from
// before and after the state was chosen are candidates.
func keyOfState(ctx context.Context, d *datadir.Directory, f *sqlite.File, from inspect.Source, candidates [][]byte) ([]byte, error) {
	after, err := existingKeys(d, from)
	if err != nil {
		return nil, err
	}
	candidates = append(candidates, after...)
	keys, err := sealing.New(candidates[0], candidates[1:]...)
	if err != nil {
		return nil, err
	}
	if err := audittrail.CheckKey(ctx, f, keys, f.Path()); err != nil {
		return nil, err
	}
	return datadir.KeyText(candidates[keys.Chosen()]), nil
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
