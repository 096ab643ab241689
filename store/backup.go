package store

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
)

// A backup is one tar file with
//
//	manifest.json   what it is, and the SHA-256 of the database
//	secret.key      the master key, if the data directory holds it
//	kontor.db       the database, one state of it, without gaps and without a log
//
// The key travels with the database, so that the file alone brings everything back on another machine:
// keep it like the key. Whoever keeps the key elsewhere (Options.SecretKey, or WithoutKey) gets a backup
// without it, and gives the key again to the restored database.
const (
	manifestName  = "manifest.json"
	backupFormat  = 1
	maxSmallEntry = 1 << 20 // of the two small files in a backup
)

// manifest describes a backup.
type manifest struct {
	Format    int    `json:"format"`
	CreatedAt Time   `json:"created_at"`
	Schema    int64  `json:"schema"`
	Bytes     int64  `json:"bytes"`
	SHA256    string `json:"sha256"`
	WithKey   bool   `json:"with_key"`
}

// BackupOptions choose what goes into a backup.
type BackupOptions struct {
	WithoutKey bool
}

// Backup writes one state of the database in o.Dir to a new file. It works beside a process that uses
// the database and does not hold up its writes. An existing file is refused with fs.ErrExist.
func Backup(ctx context.Context, o Options, file string, choice BackupOptions) error {
	clock := o.Clock
	if clock == nil {
		clock = systemClock{}
	}
	d := &directory{path: o.Dir}
	if !d.has(databaseName) {
		return d.missing()
	}
	var key []byte
	if !choice.WithoutKey && o.SecretKey == "" {
		var err error
		if key, err = d.readKey(); err != nil {
			return fmt.Errorf("%s cannot be read: %w", d.file(keyName), cause(err))
		}
	}
	return backup(ctx, d.file(databaseName), key, TimeOf(clock.Now()), file)
}

// Backup writes the present state of the database to a new file, beside all that goes on.
func (db *DB) Backup(ctx context.Context, file string, choice BackupOptions) error {
	o := Options{Dir: db.dir.path, Clock: db.clock}
	if !db.dir.has(keyName) {
		choice.WithoutKey = true // the key was given to Open and is kept elsewhere
	}
	return Backup(ctx, o, file, choice)
}

func backup(ctx context.Context, path string, key []byte, now Time, file string) (err error) {
	if _, err := os.Lstat(file); err == nil {
		return fmt.Errorf("%s exists: %w", file, fs.ErrExist)
	}
	work, done, err := workDirectory(filepath.Dir(file))
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", file, cause(err))
	}
	defer done()

	if err := syncMark(path); err != nil {
		return fmt.Errorf("%s cannot be synced: %w", markName, cause(err))
	}
	copied := filepath.Join(work, databaseName)
	m := manifest{Format: backupFormat, CreatedAt: now, WithKey: key != nil}
	if m.Schema, err = copyDatabase(ctx, path, copied); err != nil {
		return err
	}
	if m.Bytes, m.SHA256, err = digestFile(copied); err != nil {
		return err
	}
	whole := filepath.Join(work, "backup.tar")
	if err := writeTar(whole, m, key, copied); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	// A link, unlike a rename, refuses a file that came into being meanwhile.
	if err := os.Link(whole, file); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: %w", file, fs.ErrExist)
	} else if err != nil {
		if err := os.Rename(whole, file); err != nil { // a file system without links
			return fmt.Errorf("write %s: %w", file, err)
		}
	}
	return syncDirectory(filepath.Dir(file))
}

// copyDatabase writes one state of the database to a new file and tells its schema version.
func copyDatabase(ctx context.Context, from, to string) (schema int64, err error) {
	conn, _, err := openExisting(from)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if schema, err = schemaVersion(conn); err != nil {
		return 0, explain(from, err)
	}
	if err := os.WriteFile(to, nil, fileMode); err != nil {
		return 0, err
	}
	conn.SetContext(ctx)
	if err := translate(conn.CopyTo(to)); err != nil {
		return 0, fmt.Errorf("copy %s: %w", from, err)
	}
	return schema, nil
}

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
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
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
		h := &tar.Header{Name: name, Mode: fileMode, Size: size, ModTime: m.CreatedAt.Std(), Format: tar.FormatPAX}
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
		if err := put(keyName, int64(len(key)), bytes.NewReader(key)); err != nil {
			return err
		}
	}
	if err := put(databaseName, m.Bytes, in); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return out.Sync()
}
