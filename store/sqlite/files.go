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

// sideSuffixes follow the name of a database in the names of the files that SQLite creates beside it.
var sideSuffixes = []string{logSuffix, "-shm", "-journal"}

// Files returns the names of a database and of the files that SQLite creates beside it.
func Files(database string) []string {
	names := []string{database}
	for _, suffix := range sideSuffixes {
		names = append(names, database+suffix)
	}
	return names
}

// RemoveSideFiles deletes the files beside a database that is not open. A log that stayed would be applied to the next
// database of that name.
func RemoveSideFiles(d *datadir.Directory, database string) error {
	return d.Remove(Files(database)[1:]...)
}

// findDatabase reports whether the database must be created. It returns an error if there are signs of another one.
func findDatabase(d *datadir.Directory) (fresh bool, err error) {
	path := d.File(datadir.Database)
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return false, fmt.Errorf("%s is a directory", path)
	case err == nil && info.Size() == 0:
		return false, emptyDatabase(path)
	case err == nil:
		return false, FinishRestore(d)
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	if log, err := os.Stat(path + logSuffix); err == nil && log.Size() > 0 {
		return false, fmt.Errorf("%s is missing but its log %s is there: put the database back, or restore a backup", path, datadir.Database+logSuffix)
	}
	if d.Has(datadir.RestoringDatabase) || d.Has(datadir.RestoringKey) || d.Has(datadir.CopyingDatabase) {
		return false, Missing(d)
	}
	if d.Has(datadir.Key) && !d.Has(datadir.NewDatabase) {
		return false, fmt.Errorf("%s is missing but its key %s is there: put the database back, or restore a backup into an empty directory; "+
			"to create an empty database here, move the key away", path, datadir.Key)
	}
	return true, nil
}

// FinishRestore renames the key of a restore that was interrupted after its database was renamed.
func FinishRestore(d *datadir.Directory) error {
	if !d.Has(datadir.RestoringKey) || d.Has(datadir.Key) {
		return nil
	}
	return d.Rename(datadir.RestoringKey, datadir.Key)
}

// Missing says why a directory has no database, for a command that needs one.
func Missing(d *datadir.Directory) error {
	if d.Has(datadir.RestoringDatabase) || d.Has(datadir.RestoringKey) {
		return fmt.Errorf("a restore into %s was interrupted: run it again (kontor restore FILE --data.dir %[1]s)", d.Path())
	}
	if d.Has(datadir.CopyingDatabase) {
		return fmt.Errorf("a copy to %s was interrupted: run it again (kontor copy --from URL --to %[1]s)", d.Path())
	}
	if d.Has(datadir.NewDatabase) {
		return fmt.Errorf("the first start in %s was cut off: start the server once", d.Path())
	}
	return fmt.Errorf("%s cannot be read: %w", d.File(datadir.Database), fs.ErrNotExist)
}

// emptyDatabase says that a database has lost its content: a new database is renamed when it is complete.
func emptyDatabase(path string) error {
	return fmt.Errorf("%s is empty; restore a backup, or remove the file to start again: %w", path, engine.ErrCorrupt)
}

// beginSetup creates the file that announces a first start. An interrupted first start begins again; its key is kept.
func beginSetup(d *datadir.Directory) error {
	if err := RemoveSideFiles(d, datadir.NewDatabase); err != nil {
		return err
	}
	f, err := os.OpenFile(d.File(datadir.NewDatabase), os.O_RDWR|os.O_CREATE|os.O_TRUNC, datadir.FileMode)
	if err != nil {
		return fmt.Errorf("data directory %s cannot be written: %w", d.Path(), datadir.Cause(err))
	}
	if err := f.Close(); err != nil {
		return err
	}
	return datadir.Sync(d.Path())
}

// abandonSetup cleans up after a first start that failed, for lack of space for example. The announcement stays while there
// is a key, which would otherwise look like the key of a lost database. The next start repeats what fails here.
func abandonSetup(d *datadir.Directory) {
	if !d.Has(datadir.Key) {
		_ = d.Remove(Files(datadir.NewDatabase)...)
		return
	}
	_ = RemoveSideFiles(d, datadir.NewDatabase)
	_ = os.Truncate(d.File(datadir.NewDatabase), 0)
}

// setUp creates a complete database under another name and renames it last.
func (e *Engine) setUp(ctx context.Context) error {
	path := e.dir.File(datadir.NewDatabase)
	conn, err := connect(path, binding.ReadWrite, writerPragmas)
	if err != nil {
		return explain(path, err)
	}
	_, _, err = e.prepareDatabase(ctx, conn, path, binding.LogScan{}, true)
	if err := errors.Join(err, conn.Close()); err != nil {
		return err
	}
	// Closing has copied the log into the database. Otherwise the rename would lose the log.
	if e.dir.Has(datadir.NewDatabase + logSuffix) {
		return fmt.Errorf("%s could not be completed: its log is still there", path)
	}
	if err := datadir.SyncClosed(path); err != nil {
		return fmt.Errorf("sync %s: %w", path, datadir.Cause(err))
	}
	return e.dir.Rename(datadir.NewDatabase, datadir.Database)
}

// rejectLostDatabase returns an error if a mark shows that there was a database.
func rejectLostDatabase(d *datadir.Directory, s signer) error {
	_, p, err := readMark(d, s)
	if err != nil || p.commits == 0 {
		return nil //nolint:nilerr // no mark, or none that matters; a file that cannot be read is reported when it is created
	}
	return fmt.Errorf("%s is missing, and %s says that it held %d commits: put it back, or restore a backup into an empty directory: %w",
		d.File(datadir.Database), MarkName, p.commits, engine.ErrLoss)
}
