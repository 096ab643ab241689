package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"

	"kontor/store/engine"
	"kontor/store/sqlite/internal/binding"

	driver "modernc.org/sqlite" // goose uses the database through database/sql
)

// latestVersion returns the number of the newest migration.
func latestVersion(migrations fs.FS) (int64, error) {
	names, err := fs.Glob(migrations, "*.sql")
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
	selectTableNames = `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name NOT LIKE 'kontor\_words%' ESCAPE '\' AND name <> 'goose_db_version'`

	selectTables  = `SELECT COUNT(*), COUNT(CASE WHEN name = 'goose_db_version' THEN 1 END) FROM sqlite_schema WHERE type = 'table'`
	selectVersion = `SELECT COUNT(*), COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied = TRUE`
)

// schemaVersion reads the version of the schema, 0 for an empty database. It does not use goose, so that the start of an
// up-to-date database is fast.
func schemaVersion(c *binding.Conn) (int64, error) {
	var tables, versioned, steps, version int64
	if err := readRow(c, selectTables, nil, &tables, &versioned); err != nil {
		return 0, err
	}
	if tables == 0 {
		return 0, nil
	}
	if versioned == 0 {
		return 0, errors.New("it is the database of another program")
	}
	if err := readRow(c, selectVersion, nil, &steps, &version); err != nil {
		return 0, err
	}
	if steps == 0 { // even an empty schema has one
		return 0, fmt.Errorf("%w: the version of its schema is missing", engine.ErrCorrupt)
	}
	return version, nil
}

// migrate applies the missing migrations.
func migrate(ctx context.Context, path string, migrations fs.FS) error {
	// Not "file://": with a relative path, its first part would be taken for a host.
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?_pragma=foreign_keys(1)&_pragma=synchronous(2)&_pragma=secure_delete(1)&_txlock=immediate&vfs=" + binding.VFS
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, migrations)
	if err != nil {
		return err
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate the schema: %w", translateDriver(err))
	}
	return nil
}

// translateDriver is [translate] for errors of the driver that goose uses, which lack the error number of the system.
func translateDriver(err error) error {
	var e *driver.Error
	if !errors.As(err, &e) {
		return err
	}
	if kind := classify(&binding.Error{Code: e.Code()}); kind != nil {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}
