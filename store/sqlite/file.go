package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	lib "modernc.org/sqlite/lib"

	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/query"
	"kontor/store/sqlite/internal/binding"
)

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
	var e *binding.Error
	return errors.As(err, &e) && (e.Primary() == lib.SQLITE_CANTOPEN || e.Primary() == lib.SQLITE_READONLY)
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
	var signed string
	err := query.NewRow(ctx, f, engine.SelectMeta, []any{engine.MetaCommits}).Scan(&signed)
	if errors.Is(err, engine.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	number, _, _ := strings.Cut(signed, " ")
	return strconv.ParseInt(number, 10, 64)
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
	if damaged := (*binding.PageError)(nil); errors.As(err, &damaged) {
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

// Mark is the content of the mark beside a database.
type Mark []byte

// ReadMark reads the mark of a directory. To compare it with a database in use, read the mark first: the database holds
// what the mark promises from then on.
func ReadMark(d *datadir.Directory) (Mark, error) {
	data, err := markBytes(d)
	if errors.Is(err, errNoMark) {
		return nil, nil
	}
	return data, err
}

// CompareMark compares a database, which may be in use, with a mark that was read before. The guard must have recognised the
// database. CompareMark reports whether there is a mark, and returns an *engine.Loss, or the error of the guard for a trail
// that is not the one that the mark names.
func CompareMark(ctx context.Context, d *datadir.Directory, m Mark, guard engine.Guard) (marked bool, err error) {
	f, err := OpenFile(d.File(datadir.Database))
	if err != nil {
		return false, err
	}
	defer f.Close()
	var marking *position
	if _, p, err := parseMark(guard, m); err == nil {
		marking = &p
	}
	c, err := newComparison(ctx, f.conn, f.path, guard, marking)
	if err != nil {
		return marking != nil, err
	}
	if c.log, err = scanStillLog(f.path); err != nil {
		return marking != nil, fmt.Errorf("%w: %w", engine.ErrIO, err)
	}
	return marking != nil, c.compare()
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
