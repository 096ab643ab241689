package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"kontor/store/audittrail"
	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/erasures"
	"kontor/store/inspect"
	"kontor/store/query"
	"kontor/store/sealing"
	"kontor/store/sqlite"
)

// directorySource is a locked data directory that is copied.
type directorySource struct {
	sqliteSide
	dir  *datadir.Directory
	file *sqlite.File
	id   string
}

// openDirectory locks a data directory and verifies that its database can be copied: the key, the schema, and that no
// acknowledged write is missing.
func openDirectory(ctx context.Context, o *Options) (_ *directorySource, err error) {
	path := o.From.Dir
	if d := datadir.At(path); !d.Has(datadir.Database) {
		return nil, sqlite.Missing(d)
	}
	d, err := datadir.Open(path)
	if errors.Is(err, datadir.ErrInUse) {
		return nil, fmt.Errorf("%w; stop the server: %w", err, ErrInUse)
	}
	if err != nil {
		return nil, err
	}
	s := &directorySource{dir: d}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	masters, err := d.MasterKeys(o.SecretKey, o.PreviousKey, false)
	if err != nil {
		return nil, err
	}
	keys, err := sealing.New(masters[0], masters[1:]...)
	if err != nil {
		return nil, err
	}
	mark, err := sqlite.ReadMark(d)
	if err != nil {
		return nil, err
	}
	if s.file, err = sqlite.OpenFile(d.File(datadir.Database)); err != nil {
		return nil, err
	}
	s.from = s.file
	if err := s.file.Begin(ctx); err != nil {
		return nil, err
	}
	if err := s.check(ctx, o, keys, mark); err != nil {
		return nil, err
	}
	o.SecretKey, o.PreviousKey = string(datadir.KeyText(masters[keys.Chosen()])), "" // for the check of the target
	return s, nil
}

// check verifies schema, key and position of the database.
func (s *directorySource) check(ctx context.Context, o *Options, keys *sealing.Keys, mark sqlite.Mark) error {
	schema, err := s.file.Schema()
	if err != nil {
		return err
	}
	if err := checkSchema(o, schema); err != nil {
		return err
	}
	if err := audittrail.CheckKey(ctx, s.file, keys, s.file.Path()); err != nil {
		return err
	}
	if _, err := sqlite.CompareMark(ctx, s.dir, mark, audittrail.NewGuard(keys, s.file.Path())); err != nil {
		return err
	}
	if err := s.checkErasures(ctx); err != nil {
		return err
	}
	s.id, err = identify(ctx, s, schema)
	return err
}

// erasable has the tables of the kinds of records in the ledger of erasures.
var erasable = map[string]string{"customer": "customers", "user": "users", "persona": "personas"}

// checkErasures rejects a restored database to which the ledger of erasures was not applied yet. The ledger is not copied, because a
// PostgreSQL database has none beside it.
func (s *directorySource) checkErasures(ctx context.Context) error {
	ledger, err := erasures.Read(s.dir.File(erasures.Name), nil)
	if err != nil {
		return err
	}
	for _, e := range ledger {
		name, known := erasable[e.Kind]
		if !known {
			continue
		}
		var present bool
		sql := "SELECT EXISTS (SELECT 1 FROM " + name + " WHERE id = $1 AND erased_at IS NULL)"
		if err := query.NewRow(ctx, s.file, sql, []any{e.Subject}).Scan(&present); err != nil {
			return err
		}
		if present {
			return fmt.Errorf("%s was restored and holds data that the ledger of erasures names; start the server with it once and stop it: %w",
				s.dir.Path(), ErrErasures)
		}
	}
	return nil
}

// checkSchema returns ErrOtherSchema unless the source has the newest schema.
func checkSchema(o *Options, schema int64) error {
	latest, err := engine.LatestMigration(o.Migrations)
	if err != nil {
		return err
	}
	switch {
	case schema > latest:
		return fmt.Errorf("%s has schema %d and this program %d; use the program that wrote it: %w", o.From.Name, schema, latest, ErrOtherSchema)
	case schema < latest:
		return fmt.Errorf("%s has schema %d and this program %d; start this version with it once and stop it: %w", o.From.Name, schema, latest, ErrOtherSchema)
	}
	return nil
}

func (s *directorySource) identity() string { return s.id }

// unchanged always succeeds: the lock keeps others away.
func (s *directorySource) unchanged(context.Context) error { return nil }

// Close releases the directory.
func (s *directorySource) Close() error {
	var err error
	if s.file != nil {
		err = s.file.Close()
	}
	return errors.Join(err, s.dir.Close())
}

// directoryTarget is an empty data directory that is filled.
type directoryTarget struct {
	sqliteSide
	options *Options
	dir     *datadir.Directory
	loader  *sqlite.Loader
	keys    *sealing.Keys
}

func newDirectoryTarget(o *Options) (*directoryTarget, error) {
	keys, err := inspect.Source{SecretKey: o.SecretKey, PreviousKey: o.PreviousKey}.GivenKeys()
	if err != nil {
		return nil, err
	}
	t := &directoryTarget{options: o, keys: keys}
	if err := checkEmpty(o.To.Dir); err != nil {
		return nil, err
	}
	if t.dir, err = datadir.Open(o.To.Dir); errors.Is(err, datadir.ErrInUse) {
		err = fmt.Errorf("%w; stop the server: %w", err, ErrInUse)
	}
	return t, err
}

// checkEmpty returns ErrNotEmpty when a directory holds more than an interrupted copy.
func checkEmpty(path string) error {
	name, err := datadir.Other(path, sqlite.Files(datadir.CopyingDatabase)...)
	if err == nil && name != "" {
		err = fmt.Errorf("%s: %w", filepath.Join(path, name), ErrNotEmpty)
	}
	return err
}

// begin creates the database, or continues with it. A copy of another source begins again, because nothing of it was usable.
func (t *directoryTarget) begin(ctx context.Context, identity string) (resumed bool, err error) {
	t.loader, err = sqlite.ContinueLoader(t.dir, t.options.Migrations)
	if err == nil {
		t.from = t.loader
		var found string
		err := query.NewRow(ctx, t.loader, selectMark, nil).Scan(&found)
		if err == nil && found == identity {
			return true, nil
		}
		if err := t.loader.Close(); err != nil {
			return false, err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if t.loader, err = sqlite.NewLoader(ctx, t.dir, t.options.Migrations, audittrail.AppendOnlyTables()); err != nil {
		return false, err
	}
	t.from = t.loader
	return false, t.loader.Transact(func() error {
		if _, err := query.Exec(ctx, t.loader, createMark, nil); err != nil {
			return err
		}
		_, err := query.Exec(ctx, t.loader, insertMark, []any{identity})
		return err
	})
}

func (t *directoryTarget) insert(ctx context.Context, to *table, batch [][]any) error {
	sql := "INSERT INTO " + quoted(to.name) + " (" + names(to.columns, "") + ") VALUES (" + query.Places(1, len(to.columns)) + ")"
	return t.loader.Transact(func() error {
		for _, row := range batch {
			if _, err := query.Exec(ctx, t.loader, sql, row); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
}

// finish checks the database, gives it its name and writes its mark.
func (t *directoryTarget) finish(ctx context.Context) (report inspect.Report, err error) {
	if err := t.loader.Transact(func() error {
		_, err := query.Exec(ctx, t.loader, dropMark, nil)
		return err
	}); err != nil {
		return report, err
	}
	if err := t.loader.Close(); err != nil {
		return report, err
	}
	if report, err = inspect.CheckFile(ctx, t.loader.Path(), t.keys, t.options.Further); err != nil {
		return report, err
	}
	if err := sqlite.RemoveSideFiles(t.dir, datadir.CopyingDatabase); err != nil { // of the check
		return report, err
	}
	if err := t.loader.Finish(); err != nil {
		return report, err
	}
	guard := audittrail.NewGuard(t.keys, t.dir.File(datadir.Database))
	return report, sqlite.WriteMark(ctx, t.dir, guard, clock.Of(clock.System{}.Now()))
}

// Close releases the directory.
func (t *directoryTarget) Close() error {
	var err error
	if t.loader != nil {
		err = t.loader.Close()
	}
	return errors.Join(err, t.dir.Close())
}
