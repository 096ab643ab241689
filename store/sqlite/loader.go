package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"kontor/store/datadir"
	"kontor/store/sqlite/internal/binding"
)

// A Loader fills the database of a locked directory from outside, for a copy of a database of another engine. The database has
// the name datadir.CopyingDatabase until Finish, so that no start uses it before.
//
// After a kill ContinueLoader finds what was committed. After a loss of power the last commits may be missing.
type Loader struct {
	source
	dir  *datadir.Directory
	path string
}

// NewLoader creates the database with its schema and the protection of append-only tables. It deletes that of an interrupted
// copy.
func NewLoader(ctx context.Context, d *datadir.Directory, migrations fs.FS, appendOnly []string) (*Loader, error) {
	if err := d.Remove(Files(datadir.CopyingDatabase)...); err != nil {
		return nil, fmt.Errorf("data directory %s cannot be written: %w", d.Path(), datadir.Cause(err))
	}
	path := d.File(datadir.CopyingDatabase)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, datadir.FileMode)
	if err != nil {
		return nil, fmt.Errorf("data directory %s cannot be written: %w", d.Path(), datadir.Cause(err))
	}
	if err := errors.Join(f.Close(), datadir.Sync(d.Path())); err != nil {
		return nil, err
	}
	l, err := openLoader(d, path)
	if err != nil {
		return nil, err
	}
	if err = migrate(ctx, path, migrations); err == nil {
		_, err = restoreTriggers(ctx, l.conn, appendOnly)
	}
	if err != nil {
		return nil, errors.Join(explain(path, err), l.Close())
	}
	return l, nil
}

// ContinueLoader opens the database of an interrupted copy whose schema is complete. It returns fs.ErrNotExist for any other.
func ContinueLoader(d *datadir.Directory, migrations fs.FS) (*Loader, error) {
	path := d.File(datadir.CopyingDatabase)
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		return nil, fs.ErrNotExist
	}
	l, err := openLoader(d, path)
	if err != nil {
		return nil, err
	}
	latest, err := latestVersion(migrations)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if version, err := schemaVersion(l.conn); err != nil || version != latest {
		return nil, errors.Join(fs.ErrNotExist, l.Close())
	}
	return l, nil
}

// openLoader opens the database. Rows arrive table by table, so that references are not checked before File.Verify.
func openLoader(d *datadir.Directory, path string) (*Loader, error) {
	conn, err := connect(path, binding.ReadWrite, append(slices.Clone(writerPragmas), "PRAGMA foreign_keys = OFF"))
	if err != nil {
		return nil, explain(path, err)
	}
	return &Loader{source: source{conn}, dir: d, path: path}, nil
}

// Transact runs fn in a write transaction, which is undone when fn fails.
func (l *Loader) Transact(fn func() error) error {
	if err := l.source.Transact(fn); err != nil || l.conn.LogFrames() < checkpointFrames {
		return err
	}
	_, _, err := l.conn.Checkpoint()
	return translate(err)
}

// Path returns the path of the database while it is being filled.
func (l *Loader) Path() string { return l.path }

// Finish gives the complete database its name. From then on a start uses it.
func (l *Loader) Finish() error {
	if err := l.Close(); err != nil {
		return err
	}
	if l.dir.Has(datadir.CopyingDatabase + logSuffix) {
		return fmt.Errorf("%s could not be completed: its log is still there", l.path)
	}
	if err := datadir.SyncClosed(l.path); err != nil {
		return fmt.Errorf("sync %s: %w", l.path, datadir.Cause(err))
	}
	return l.dir.Rename(datadir.CopyingDatabase, datadir.Database)
}

// Close closes the database, whose log it copies into the file. A second Close does nothing.
func (l *Loader) Close() error { return translate(l.conn.Close()) }

// LatestSchema returns the number of the newest migration.
func LatestSchema(migrations fs.FS) (int64, error) { return latestVersion(migrations) }
