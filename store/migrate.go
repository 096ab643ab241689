package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"

	"kontor/store/internal/sqlite"

	driver "modernc.org/sqlite" // goose speaks to the database through database/sql
)

//go:embed migrations/*.sql
var migrations embed.FS

// latestVersion is the number of the newest migration.
func latestVersion() (int64, error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return 0, err
	}
	var latest int64
	for _, name := range names {
		digits, _, _ := strings.Cut(filepath.Base(name), "_")
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("migration %s has no number", name)
		}
		latest = max(latest, n)
	}
	return latest, nil
}

const (
	selectTables  = `SELECT COUNT(*), COUNT(CASE WHEN name = 'goose_db_version' THEN 1 END) FROM sqlite_schema WHERE type = 'table'`
	selectVersion = `SELECT COUNT(*), COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied = TRUE`
)

// schemaVersion reads the version of the schema, 0 for an empty database. It looks by itself, so that
// the start of an up-to-date database need not wake goose.
func schemaVersion(c *sqlite.Conn) (int64, error) {
	var tables, versioned, steps, version int64
	if err := readKept(c, selectTables, nil, &tables, &versioned); err != nil {
		return 0, err
	}
	if tables == 0 {
		return 0, nil
	}
	if versioned == 0 {
		return 0, errors.New("it is a database of another program")
	}
	if err := readKept(c, selectVersion, nil, &steps, &version); err != nil {
		return 0, err
	}
	if steps == 0 { // even an empty schema has one
		return 0, fmt.Errorf("%w: the version of its schema is gone", ErrCorrupt)
	}
	return version, nil
}

// readKept reads one row on a connection that no pool or writer has yet.
func readKept(c *sqlite.Conn, sql string, args []any, dest ...any) error {
	s, err := c.Prepare(sql)
	if err != nil {
		return translate(err)
	}
	_, more, err := start(s, args)
	if err != nil {
		return err
	}
	defer s.Reset()
	if !more {
		return ErrNotFound
	}
	return scan(s, dest)
}

// migrate brings the schema up to date.
func migrate(ctx context.Context, path string) error {
	// Not "file://": what follows that would be a host when the path is relative.
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?_pragma=foreign_keys(1)&_pragma=synchronous(2)&_txlock=immediate&vfs=" + sqlite.VFS
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, dir)
	if err != nil {
		return err
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate the schema: %w", translateDriver(err))
	}
	return nil
}

// translateDriver is [translate] for an error of the driver that goose uses. The error number of the system is not known.
func translateDriver(err error) error {
	var e *driver.Error
	if !errors.As(err, &e) {
		return err
	}
	if kind := classify(&sqlite.Error{Code: e.Code()}); kind != nil {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}
