package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

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
			err = errors.Join(err, d.Remove(restoreFiles...), os.Remove(d.File(datadir.Lock))) // created here: the directory was empty
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

// restoreFiles are the files of a restore that is not complete.
var restoreFiles = append(sqlite.Files(datadir.RestoringDatabase), datadir.RestoringKey, datadir.RestoringDatabase+copySuffix, sqlite.RestoredName)

// checkEmpty returns ErrNotEmpty when a directory holds more than an interrupted restore.
func checkEmpty(path string) error {
	name, err := datadir.Other(path, append([]string{erasures.Name}, restoreFiles...)...)
	if err == nil && name != "" {
		err = fmt.Errorf("%s holds %s: %w", path, name, ErrNotEmpty)
	}
	return err
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

// unpack writes the database and the key of a backup and of the increments after it. It compares the pages with their sums.
func (r *restore) unpack(ctx context.Context, parts []Part) (m manifest, err error) {
	path := r.File(datadir.RestoringDatabase)
	database, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, datadir.FileMode)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	if len(parts) == 0 {
		return m, errNoBackup
	}
	before := ""
	for i, part := range parts {
		if m, err = r.apply(ctx, part, before, database, i == len(parts)-1); err != nil {
			return m, &PartError{part.Name, err}
		}
		before = m.ID
	}
	if err := database.Sync(); err != nil {
		return m, err
	}
	return m, r.addChecksums(ctx)
}

// apply writes the pages of one backup over those of the backup before.
func (r *restore) apply(ctx context.Context, part Part, before string, database *os.File, last bool) (manifest, error) {
	in, err := part.Open(ctx)
	if err != nil {
		return manifest{}, fmt.Errorf("cannot be read: %w", datadir.Cause(err))
	}
	defer in.Close()
	var m manifest
	to := content{
		manifest: func(found manifest) error {
			m = found
			if part.Accept != nil {
				if err := part.Accept(m.header()); err != nil {
					return err
				}
			}
			return follows(m, before)
		},
		key: func(text []byte) error { return datadir.Write(r.File(datadir.RestoringKey), text) },
		page: func(number int64, page []byte) error {
			_, err := database.WriteAt(page, (number-1)*m.PageSize)
			return errors.Join(err, ctx.Err())
		},
		sums: func(in io.Reader, given bool) error {
			if err := database.Truncate(m.Bytes()); err != nil || !last || !given {
				return err
			}
			return compareSums(ctx, database, m, in)
		},
	}
	return read(in, to)
}

// follows reports whether a backup continues the one with an id; an empty id stands for the beginning.
func follows(m manifest, before string) error {
	switch {
	case m.Base == before:
		return nil
	case before == "":
		return fmt.Errorf("%w: this backup holds only what has changed since another one; name that one first", ErrOrder)
	case m.Base == "":
		return fmt.Errorf("%w: this backup is complete by itself; name it alone, or first", ErrOrder)
	}
	return fmt.Errorf("%w: this backup does not continue the one before it", ErrOrder)
}

// compareSums compares the pages of a database with the sums of a backup.
func compareSums(ctx context.Context, database *os.File, m manifest, in io.Reader) error {
	pages := io.NewSectionReader(database, 0, m.Bytes())
	page := make([]byte, m.PageSize)
	var want sum
	for n := int64(1); n <= m.Pages && ctx.Err() == nil; n++ {
		if _, err := io.ReadFull(pages, page); err != nil {
			return err
		}
		if _, err := io.ReadFull(in, want[:]); err != nil {
			return err
		}
		if sumOf(page) != want {
			return fmt.Errorf("%w: page %d does not have its sum", engine.ErrCorrupt, n)
		}
	}
	return ctx.Err()
}

// addChecksums gives checksums to the pages of a database from before there were any.
func (r *restore) addChecksums(ctx context.Context) error {
	path := r.File(datadir.RestoringDatabase)
	f, err := sqlite.OpenFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if has, err := f.HasChecksums(ctx); err != nil || has {
		return err
	}
	copied := r.File(datadir.RestoringDatabase + copySuffix)
	if err := r.Remove(datadir.RestoringDatabase + copySuffix); err != nil {
		return err
	}
	if err := os.WriteFile(copied, nil, datadir.FileMode); err != nil {
		return err
	}
	if err := f.CopyTo(ctx, copied); err != nil {
		return err
	}
	if err := datadir.SyncClosed(copied); err != nil {
		return err
	}
	return os.Rename(copied, path)
}

const copySuffix = ".copy"

// PutLedger puts a ledger of erasures into a data directory before a restore, and returns the number of its entries. A ledger in
// the directory is kept if it continues the given one. If neither continues the other, PutLedger returns an error: one of them
// would lose erasures. The start of the server verifies the ledger with the key. An empty file name leaves the directory as it is.
func PutLedger(dir, file string) (entries int, err error) {
	d := datadir.At(dir)
	present, err := os.ReadFile(d.File(erasures.Name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("%s cannot be read: %w", d.File(erasures.Name), datadir.Cause(err))
	}
	whole, source := present, d.File(erasures.Name)
	if file != "" {
		source = file
		given, err := os.ReadFile(file)
		if err != nil {
			return 0, fmt.Errorf("%s cannot be read: %w", file, datadir.Cause(err))
		}
		if whole, err = erasures.Longer(present, given); err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
	}
	found, _, err := erasures.Parse(whole, nil)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", source, err)
	}
	if len(whole) == len(present) {
		return len(found), nil
	}
	if err := datadir.Make(dir); err != nil {
		return 0, fmt.Errorf("data directory %s cannot be created: %w", dir, datadir.Cause(err))
	}
	return len(found), datadir.Write(d.File(erasures.Name), whole)
}

// ReadLedger returns the ledger of erasures of a data directory, which may be in use.
func ReadLedger(dir string) ([]byte, error) {
	data, err := os.ReadFile(datadir.At(dir).File(erasures.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the ledger of erasures cannot be read: %w", datadir.Cause(err))
	}
	_, _, err = erasures.Parse(data, nil)
	return data, err
}
