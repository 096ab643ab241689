package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"kontor/store/audittrail"
	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/erasures"
	"kontor/store/inspect"
	"kontor/store/sealing"
	"kontor/store/sqlite"
)

// ErrNotEmpty says that a restore would have to overwrite something.
var ErrNotEmpty = errors.New("a backup is only restored into an empty directory")

// ErrOrder says that a backup does not follow the one before it.
var ErrOrder = errors.New("the backups are not in their order")

// Restore writes the database of a backup, and of the increments after it, into a data directory, which must be missing or
// empty. Files of an interrupted restore and the ledger of erasures do not count; the next start applies the ledger. The
// database is checked before it is renamed. After an error nothing of it stays.
func Restore(ctx context.Context, files []string, to inspect.Source) (Restored, error) {
	var parts []Part
	for _, name := range files {
		parts = append(parts, FilePart(name))
	}
	return RestoreParts(ctx, parts, to)
}

// Restored says what was restored.
type Restored struct {
	inspect.Report
	Incarnation string // of the restored database, see sqlite.Lineage
}

// Part is a backup that a restore reads.
type Part struct {
	Name string
	Open func(ctx context.Context) (io.ReadCloser, error)
	// Accept returns an error if the backup is not the expected one; nil accepts all.
	Accept func(Header) error
}

// PartError is an error of one of the parts of a restore.
type PartError struct {
	Name string // of the part
	Err  error
}

func (e *PartError) Error() string { return e.Name + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *PartError) Unwrap() error { return e.Err }

// FilePart returns the backup in a file.
func FilePart(name string) Part {
	return Part{Name: name, Open: func(context.Context) (io.ReadCloser, error) { return os.Open(name) }}
}

// RestoreParts restores a backup and the increments after it, as Restore does.
func RestoreParts(ctx context.Context, parts []Part, to inspect.Source) (Restored, error) {
	if err := checkEmpty(to.Dir); err != nil {
		return Restored{}, err
	}
	d, err := announce(to.Dir)
	if err != nil {
		return Restored{}, err
	}
	defer d.Close()
	if err := checkEmpty(to.Dir); err != nil { // another restore may have been faster
		return Restored{}, err
	}
	r := &restore{Directory: d}
	report, err := r.run(ctx, parts, to.SecretKey)
	if err != nil {
		if !d.Has(datadir.Database) {
			err = errors.Join(err, r.removeAll(), os.Remove(d.File(datadir.Lock))) // created here: the directory was empty
		}
		return Restored{}, fmt.Errorf("restore: %w", err)
	}
	return report, nil
}

// announce creates the file by which a start recognises an interrupted restore, before anything else, and locks the
// directory.
func announce(path string) (*datadir.Directory, error) {
	if err := datadir.Make(path); err != nil {
		return nil, fmt.Errorf("data directory %s cannot be created: %w", path, datadir.Cause(err))
	}
	announcement := filepath.Join(path, datadir.RestoringDatabase)
	f, err := os.OpenFile(announcement, os.O_WRONLY|os.O_CREATE|os.O_EXCL, datadir.FileMode)
	first := err == nil
	if first {
		err = f.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("data directory %s cannot be written: %w", path, datadir.Cause(err))
	}
	d, err := datadir.Open(path)
	if err != nil && first {
		err = errors.Join(err, os.Remove(announcement))
	}
	return d, err
}

// restore is a restore into a locked directory.
type restore struct{ *datadir.Directory }

// removeAll deletes the files of a restore that failed.
func (r *restore) removeAll() error {
	return r.Remove(append(sqlite.Files(datadir.RestoringDatabase), datadir.RestoringKey, datadir.RestoringDatabase+copySuffix, sqlite.RestoredName)...)
}

// checkEmpty returns ErrNotEmpty when a directory holds more than an interrupted restore.
func checkEmpty(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", path, datadir.Cause(err))
	}
	ignored := append(sqlite.Files(datadir.RestoringDatabase), datadir.Lock, "lost+found", datadir.RestoringKey, datadir.RestoringDatabase+copySuffix, sqlite.RestoredName, erasures.Name)
	for _, e := range entries {
		if !slices.Contains(ignored, e.Name()) {
			return fmt.Errorf("%s holds %s: %w", path, e.Name(), ErrNotEmpty)
		}
	}
	return nil
}

// run unpacks and checks the files, and then renames them: the database first, because it decides whether the restore
// happened. A process that opens the directory between the two renames the key.
func (r *restore) run(ctx context.Context, parts []Part, givenKey string) (report Restored, err error) {
	if err := sqlite.RemoveSideFiles(r.Directory, datadir.RestoringDatabase); err != nil { // of an interrupted restore
		return report, err
	}
	if err := r.Remove(datadir.RestoringKey, sqlite.RestoredName); err != nil {
		return report, err
	}
	m, err := r.unpack(ctx, parts)
	if err != nil {
		return report, err
	}
	keys, err := r.keys(givenKey)
	if err != nil {
		return report, err
	}
	if report.Report, err = inspect.CheckFile(ctx, r.File(datadir.RestoringDatabase), keys, nil); err != nil {
		return report, err
	}
	if report.Schema != m.Schema {
		return report, fmt.Errorf("%w: schema %d in the database, %d in the manifest", engine.ErrCorrupt, report.Schema, m.Schema)
	}
	if err := m.Origin.accept(report.Report); err != nil {
		return report, err
	}
	report.Incarnation = sqlite.NewIncarnation()
	if err := sqlite.RecordRestore(r.Directory, datadir.RestoringDatabase, report.Incarnation); err != nil {
		return report, err
	}
	if err := sqlite.RemoveSideFiles(r.Directory, datadir.RestoringDatabase); err != nil { // of the check
		return report, err
	}
	if err := datadir.Sync(r.Path()); err != nil { // the key or the record is durable before the database counts
		return report, err
	}
	if err := r.Rename(datadir.RestoringDatabase, datadir.Database); err != nil {
		return report, err
	}
	if err := sqlite.FinishRestore(r.Directory); err != nil || keys == nil {
		return report, err // without the key, the first start with the key creates the mark
	}
	guard := audittrail.NewGuard(keys, r.File(datadir.Database))
	if err := sqlite.WriteMark(ctx, r.Directory, guard, clock.Of(clock.System{}.Now())); err != nil {
		return report, err
	}
	return report, sqlite.RemoveSideFiles(r.Directory, datadir.Database) // of the last look
}

// keys returns the keys of a database that is being restored: of the given key, else of the key in the backup. It returns
// nil when there is none.
func (r *restore) keys(given string) (*sealing.Keys, error) {
	if given == "" {
		text, err := os.ReadFile(r.File(datadir.RestoringKey))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		given = string(text)
	}
	key, err := sealing.ParseMasterKey(given)
	if err != nil {
		return nil, err
	}
	return sealing.New(key)
}
