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
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kontor/store/audittrail"
	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/engine"
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
	m := manifest{Format: format, ID: rand.Text(), CreatedAt: clock.Of(clock.System{}.Now()), WithKey: o.WithKey}
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

// workPrefix leads the names of the directories in which backups are prepared, beside their targets.
const workPrefix = ".kontor-backup-"

// workDirectory creates a directory for the temporary files of a backup, and deletes those that killed backups have left. A
// directory is in use while its lock is held; the lock ends with the process. done deletes the directory.
func workDirectory(parent string) (path string, done func(), err error) {
	sweepWorkDirectories(parent)
	const tries = 10 // another backup may delete the directory before it is locked
	for range tries {
		if path, err = os.MkdirTemp(parent, workPrefix); err != nil {
			return "", nil, err
		}
		lock, locked, err := lockWork(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", nil, errors.Join(err, os.RemoveAll(path))
		}
		if locked {
			return path, func() {
				os.RemoveAll(path) // the next backup deletes what stays
				lock.Close()
			}, nil
		}
	}
	return "", nil, datadir.ErrInUse
}

// lockWork locks a work directory. locked is false when another process has locked it or has just deleted it.
func lockWork(path string) (lock *os.File, locked bool, err error) {
	name := filepath.Join(path, datadir.Lock)
	lock, locked, err = datadir.TryLock(name)
	if lock == nil {
		return nil, false, err
	}
	if err != nil || !locked {
		lock.Close()
		return nil, false, err
	}
	ours, err := lock.Stat()
	if err == nil {
		var there fs.FileInfo
		if there, err = os.Stat(name); err == nil && os.SameFile(ours, there) {
			return lock, true, nil
		}
	}
	lock.Close()
	return nil, false, err
}

// sweepWorkDirectories deletes the work directories that no process has locked. The next backup tries again where that
// fails.
func sweepWorkDirectories(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return // creating the directory will report it
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), workPrefix) {
			continue
		}
		path := filepath.Join(parent, e.Name())
		if lock, locked, err := lockWork(path); err == nil && locked {
			os.RemoveAll(path)
			lock.Close()
		}
	}
}

// Origin says which state of which database a part of a continuous backup holds, and which place it has among the other parts.
type Origin struct {
	// Database identifies the bank over all copies and restores: the hash of the first entry of its audit trail. It is empty
	// before that entry.
	Database string `json:"database"`
	sqlite.Lineage
	Commits int64  `json:"commits"`
	Seq     int64  `json:"audit_seq"` // the newest entry of the audit trail
	Hash    string `json:"audit_hash"`

	Chain   string        `json:"chain"`
	Number  int64         `json:"number"`
	Elapsed time.Duration `json:"elapsed"` // how long the incarnation was served; no clock that jumps changes it
}

// OriginOf returns the origin of a recording, without its place.
func OriginOf(ctx context.Context, taken *sqlite.Recording) (Origin, error) {
	o := Origin{Lineage: taken.Lineage, Commits: taken.Commits, Seq: taken.Head.Seq, Hash: hex.EncodeToString(taken.Head.Hash[:])}
	var err error
	if o.Database, err = audittrail.HashOf(ctx, taken.Source(), 1); errors.Is(err, engine.ErrNotFound) {
		err = nil
	}
	return o, err
}

// accept returns an error if a restored database is not the state of the origin.
func (o *Origin) accept(r inspect.Report) error {
	if o == nil || o.Commits == r.Commits && o.Seq == r.AuditEntries && (o.Seq == 0 || o.Hash == r.AuditHead) {
		return nil
	}
	return fmt.Errorf("%w: the database is at commit %d with the audit entry %d (%s), the backup says commit %d with the entry %d (%s)", engine.ErrCorrupt,
		r.Commits, r.AuditEntries, r.AuditHead, o.Commits, o.Seq, o.Hash)
}

// Continues reports whether a recording has an entry of the audit trail; entry 0 stands for an empty trail.
func Continues(ctx context.Context, taken *sqlite.Recording, seq int64, hash string) (bool, error) {
	if seq == 0 {
		return true, nil
	}
	found, err := audittrail.HashOf(ctx, taken.Source(), seq)
	if errors.Is(err, engine.ErrNotFound) {
		return false, nil
	}
	return found == hash, err
}

// Header is what a backup says about itself.
type Header struct {
	Origin    *Origin // nil for a backup of an earlier version, and for one that is not continuous
	CreatedAt clock.Time
	Whole     bool // no increment
}

func (m manifest) header() Header { return Header{m.Origin, m.CreatedAt, m.Base == ""} }

// ReadHeader reads only what a backup says about itself.
func ReadHeader(in io.Reader) (h Header, err error) {
	enough := errors.New("enough")
	_, err = read(in, content{manifest: func(m manifest) error {
		h = m.header()
		return enough
	}})
	if errors.Is(err, enough) {
		err = nil
	}
	return h, err
}
