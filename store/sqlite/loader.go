package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/sqlite/internal/binding"
)

// A Loader fills the database of a locked directory from outside, for a copy of a database of another engine. The database has
// the name datadir.CopyingDatabase until Finish, so that no start uses it before.
//
// A Loader that was killed continues with the next OpenLoader: what a Transact has committed is there, in the order of the
// commits. A loss of power may lose the last ones.
type Loader struct {
	source
	dir  *datadir.Directory
	path string
}

// OpenLoader creates the database with its schema and the protection of append-only tables, or opens that of an interrupted
// copy. An incomplete schema is created again.
func OpenLoader(ctx context.Context, d *datadir.Directory, migrations fs.FS, appendOnly []string) (*Loader, error) {
	path := d.File(datadir.CopyingDatabase)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, datadir.FileMode)
	if err != nil {
		return nil, fmt.Errorf("data directory %s cannot be written: %w", d.Path(), datadir.Cause(err))
	}
	if err := errors.Join(f.Close(), datadir.Sync(d.Path())); err != nil {
		return nil, err
	}
	conn, err := connect(path, binding.ReadWrite, writerPragmas)
	if err != nil {
		return nil, explain(path, err)
	}
	l := &Loader{source: source{conn}, dir: d, path: path}
	if err := l.prepare(ctx, migrations, appendOnly); err != nil {
		return nil, errors.Join(explain(path, err), conn.Close())
	}
	return l, nil
}

func (l *Loader) prepare(ctx context.Context, migrations fs.FS, appendOnly []string) error {
	version, err := schemaVersion(l.conn)
	if err != nil {
		return err
	}
	latest, err := latestVersion(migrations)
	if err != nil {
		return err
	}
	switch {
	case version > latest:
		return engine.ErrNewerSchema
	case version < latest:
		if err := migrate(ctx, l.path, migrations); err != nil {
			return err
		}
	}
	if _, err := restoreTriggers(ctx, l.conn, appendOnly); err != nil {
		return err
	}
	// Rows arrive table by table, and Verify of the finished database checks the references.
	return translate(l.conn.Run("PRAGMA foreign_keys = OFF"))
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
