package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	lib "modernc.org/sqlite/lib"

	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/query"
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
	if err != nil || p == nil || p.commits == 0 {
		return nil //nolint:nilerr // no mark, or none that matters; a file that cannot be read is reported when it is created
	}
	return fmt.Errorf("%s is missing, and %s says that it held %d commits: put it back, or restore a backup into an empty directory: %w",
		d.File(datadir.Database), MarkName, p.commits, engine.ErrLoss)
}

// File is a database file that is read without its engine, beside a process that uses it or without one. It changes
// nothing. It implements engine.Inspection.
type File struct {
	source
	path string
	info fs.FileInfo
}

// OpenFile opens a database file for reading. It does not need the lock of the directory.
func OpenFile(path string) (*File, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Missing(datadir.At(filepath.Dir(path)))
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", path, datadir.Cause(err))
	}
	if info.Size() == 0 {
		return nil, emptyDatabase(path)
	}
	conn, err := connect(path, binding.ReadOnly, nil)
	if err != nil {
		return nil, explain(path, err)
	}
	if hasNoLog(path) && cannotOpen(conn.Run("PRAGMA schema_version")) {
		// SQLite wants to create a log, and this process may not write here.
		conn.Close()
		if conn, err = connect(path, binding.Immutable, nil); err != nil {
			return nil, explain(path, err)
		}
	}
	return &File{source: source{conn}, path: path, info: info}, nil
}

// hasNoLog reports whether all of a database is in its file.
func hasNoLog(path string) bool {
	log, err := os.Stat(path + logSuffix)
	return errors.Is(err, fs.ErrNotExist) || err == nil && log.Size() == 0
}

func cannotOpen(err error) bool {
	e, ok := errors.AsType[*binding.Error](err)
	return ok && (e.Primary() == lib.SQLITE_CANTOPEN || e.Primary() == lib.SQLITE_READONLY)
}

// Path returns the path of the file.
func (f *File) Path() string { return f.path }

// Bytes returns the size of the file.
func (f *File) Bytes() int64 { return f.info.Size() }

// IgnoreChecksums makes the file accept pages whose checksum is wrong. Call it before anything else.
func (f *File) IgnoreChecksums() { f.conn.IgnoreChecksums() }

// Begin makes everything that follows see one state of the database, and end with the context.
func (f *File) Begin(ctx context.Context) error {
	f.conn.SetContext(ctx)
	if err := f.conn.Run(beginRead); err != nil {
		return explain(f.path, translate(err))
	}
	return nil
}

// Schema returns the version of the schema, 0 for an empty database.
func (f *File) Schema() (int64, error) {
	version, err := schemaVersion(f.conn)
	if err != nil {
		return 0, explain(f.path, err)
	}
	return version, nil
}

// Commits returns the number of the newest commit; 0 for a database from before commits were counted.
func (f *File) Commits(ctx context.Context) (int64, error) {
	signed, known, err := query.Meta(ctx, query.NewView(f, 0), engine.MetaCommits)
	if err != nil || !known {
		return 0, err
	}
	return commitNumber(signed)
}

// Verify compares every page with its checksum, also those that no table uses, and checks the structure of tables and
// indexes and the references between rows. It returns how many pages have checksums.
func (f *File) Verify(ctx context.Context) (pages int64, err error) {
	if pages, err = f.verifyPages(ctx); err != nil {
		return pages, explain(f.path, err)
	}
	if err := runCheck(ctx, f.conn, "PRAGMA integrity_check(1)"); err != nil {
		return pages, fmt.Errorf("%s: %w", f.path, err)
	}
	if err := f.verifyReferences(ctx); err != nil {
		return pages, fmt.Errorf("%s: %w", f.path, err)
	}
	return pages, nil
}

func (f *File) verifyPages(ctx context.Context) (int64, error) {
	pages, err := f.conn.VerifyPages(ctx)
	if _, damaged := errors.AsType[*binding.PageError](err); damaged {
		return pages, fmt.Errorf("%w: %w", engine.ErrCorrupt, err)
	}
	return pages, translate(err)
}

func (f *File) verifyReferences(ctx context.Context) error {
	var table, parent string
	var row *int64
	var rule int
	err := query.NewRow(ctx, f, "PRAGMA foreign_key_check", nil).Scan(&table, &row, &parent, &rule)
	if errors.Is(err, engine.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	where := ""
	if row != nil {
		where = fmt.Sprintf(" (row %d)", *row)
	}
	return fmt.Errorf("%w: a row of %s%s points to a row of %s that is missing", engine.ErrCorrupt, table, where, parent)
}

// Unprotected returns the names of the triggers of append-only tables that are missing or were replaced.
func (f *File) Unprotected(ctx context.Context, tables []string) ([]string, error) {
	missing, err := missingTriggers(ctx, f, tables)
	return triggerNames(missing), err
}

// CopyTo writes one state of the database to an empty file. The copy has no log.
func (f *File) CopyTo(ctx context.Context, path string) error {
	f.conn.SetContext(ctx)
	if err := translate(f.conn.CopyTo(path)); err != nil {
		return fmt.Errorf("copy %s: %w", f.path, err)
	}
	return nil
}

// Close closes the file.
func (f *File) Close() error { return f.conn.Close() }

// CompareMark compares a database, which may be in use, with a mark that was read before. The guard must have recognised the
// database. CompareMark reports whether there is a mark, and returns an *engine.Loss, or the error of the guard for a trail
// that is not the one that the mark names.
func CompareMark(ctx context.Context, d *datadir.Directory, m Mark, guard engine.Guard) (marked bool, err error) {
	f, err := OpenFile(d.File(datadir.Database))
	if err != nil {
		return false, err
	}
	defer f.Close()
	_, marking := m.newest(guard)
	c, err := newComparison(ctx, f.conn, f.path, guard, marking)
	if err == nil {
		if c.log, err = scanStillLog(f.path); err != nil {
			err = fmt.Errorf("%w: %w", engine.ErrIO, err)
		}
	}
	if err == nil {
		err = c.compare()
	}
	return marking != nil, err
}

// WriteMark writes the mark of a database that was restored.
func WriteMark(ctx context.Context, d *datadir.Directory, guard engine.Guard, now clock.Time) error {
	conn, err := connect(d.File(datadir.Database), binding.ReadOnly, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	p, _, err := readPosition(ctx, conn, guard)
	if err != nil {
		return err
	}
	p.at, p.clean = now, true
	m, err := openMark(d, guard, p)
	if err != nil {
		return err
	}
	return errors.Join(m.sync(), m.file.Close())
}

// RestoredName is the file in which a restore records the position that it restored, and the incarnation that begins with it, which belongs to one file.
//
// The position counts only while nothing was written since the restore. A restore without the master key cannot write a mark: without
// the file, the first start would take the backup of a running server for a database that lost its log. The next start deletes
// the file.
const RestoredName = "kontor.restored"

// RecordRestore records the position of a database that is restored, and the name of its incarnation.
func RecordRestore(d *datadir.Directory, database, incarnation string) error {
	conn, err := connect(d.File(database), binding.ReadOnly, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	commits, known, err := readMeta(conn, engine.MetaCommits)
	if err != nil || !known { // from before there were marks
		return err
	}
	return datadir.Write(d.File(RestoredName), []byte(strings.Join([]string{commits, incarnation, datadir.Identity(d.File(database))}, "\n")))
}

// readRestored returns what a restore recorded in a directory. ok is false without one. The incarnation is empty in a copy of the
// directory.
func readRestored(d *datadir.Directory) (commits, incarnation string, ok bool) {
	recorded, err := os.ReadFile(d.File(RestoredName))
	if err != nil {
		return "", "", false
	}
	lines := strings.Split(string(recorded), "\n")
	if len(lines) == 3 && IsIncarnation(lines[1]) && datadir.SameFile(lines[2], datadir.Identity(d.File(datadir.Database))) {
		incarnation = lines[1]
	}
	return lines[0], incarnation, true
}

// isRestored reports whether a database is at the position that a restore without the key recorded in its directory.
func isRestored(conn *binding.Conn, dir string) bool {
	recorded, _, ok := readRestored(datadir.At(dir))
	commits, known, err := readMeta(conn, engine.MetaCommits)
	return ok && err == nil && known && commits == recorded
}
