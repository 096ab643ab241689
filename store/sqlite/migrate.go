package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/pressly/goose/v3"
	driver "modernc.org/sqlite" // goose uses the database through database/sql

	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/query"
	"kontor/store/sqlite/internal/binding"
)

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
	e, ok := errors.AsType[*driver.Error](err)
	if !ok {
		return err
	}
	if kind := classify(&binding.Error{Code: e.Code()}); kind != nil {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}

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
	latest, err := engine.LatestMigration(migrations)
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

// trigger protects an append-only table. Triggers are written differently for every engine, so they are no migration.
type trigger struct{ name, sql string }

// appendOnlyTriggers returns the triggers of a table that reject updates and deletions. The message calls the rows after
// the table.
func appendOnlyTriggers(table string) []trigger {
	rows := strings.ReplaceAll(table, "_", " ")
	reject := func(name, event string) trigger {
		return trigger{table + name, `CREATE TRIGGER ` + table + name + ` BEFORE ` + event + ` ON ` + table + `
		BEGIN SELECT RAISE(ABORT, '` + rows + ` are append-only'); END`}
	}
	return []trigger{reject("_no_update", "UPDATE"), reject("_no_delete", "DELETE")}
}

const selectTrigger = `SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = $1 AND name = $2`

// missingTriggers returns the triggers that are missing or were replaced.
func missingTriggers(ctx context.Context, s engine.Source, tables []string) (missing []trigger, err error) {
	for _, table := range tables {
		for _, want := range appendOnlyTriggers(table) {
			var text string
			err := query.NewRow(ctx, s, selectTrigger, []any{table, want.name}).Scan(&text)
			if err != nil && !errors.Is(err, engine.ErrNotFound) {
				return nil, err
			}
			if !slices.Equal(strings.Fields(text), strings.Fields(want.sql)) {
				missing = append(missing, want)
			}
		}
	}
	return missing, nil
}

func triggerNames(triggers []trigger) (names []string) {
	for _, t := range triggers {
		names = append(names, t.name)
	}
	return names
}

// restoreTriggers creates missing triggers and returns their names.
func restoreTriggers(ctx context.Context, conn *binding.Conn, tables []string) (names []string, err error) {
	missing, err := missingTriggers(ctx, source{conn}, tables)
	if err != nil {
		return nil, err
	}
	for _, t := range missing {
		for _, sql := range []string{"DROP TRIGGER IF EXISTS " + t.name, t.sql} {
			if err := conn.Run(sql); err != nil {
				return nil, translate(err)
			}
		}
	}
	return triggerNames(missing), nil
}

// Unprotected returns the names of the triggers of append-only tables that are missing or were replaced. Without them a
// statement can change or delete rows.
func (e *Engine) Unprotected(ctx context.Context, s engine.Source) ([]string, error) {
	missing, err := missingTriggers(ctx, s, e.appendOnly)
	return triggerNames(missing), err
}

// wordsTable is the full-text index (FTS5) of engine.TextIndex. SQLite keeps its data in tables whose names continue with _data, _idx
// and so on. The index holds no texts of its own; triggers keep it current. With secure-delete, words that are removed leave its
// bytes at once. The index for prefixes counts the mark of the source, the first character of every word.
const wordsTable = "kontor_words"

// wordsSchema returns the statements that create the index of a table, and its triggers, empty.
func wordsSchema(x *engine.TextIndex) []string {
	replace := strings.NewReplacer("{words}", wordsTable, "{table}", x.Table, "{number}", x.Number, "{columns}", strings.Join(x.Columns, ", "),
		"{new}", "new."+strings.Join(x.Columns, ", new."), "{old}", "old."+strings.Join(x.Columns, ", old."), "{progress}", x.Progress)
	const remove = `INSERT INTO {words} ({words}, rowid, {columns}) VALUES ('delete', old.{number}, {old});`
	const add = `INSERT INTO {words} (rowid, {columns}) VALUES (new.{number}, {new});`
	statements := []string{
		`DROP TRIGGER IF EXISTS {words}_insert`, `DROP TRIGGER IF EXISTS {words}_delete`, `DROP TRIGGER IF EXISTS {words}_update`,
		`DROP TABLE IF EXISTS {words}`,
		`DELETE FROM {table}`, `DELETE FROM {progress}`,
		`CREATE VIRTUAL TABLE {words} USING fts5({columns}, content='{table}', content_rowid='{number}', tokenize='ascii', detail='none', columnsize=0, prefix='2 3')`,
		`INSERT INTO {words} ({words}, rank) VALUES ('secure-delete', 1)`,
		`CREATE TRIGGER {words}_insert AFTER INSERT ON {table} BEGIN ` + add + ` END`,
		`CREATE TRIGGER {words}_delete AFTER DELETE ON {table} BEGIN ` + remove + ` END`,
		`CREATE TRIGGER {words}_update AFTER UPDATE ON {table} BEGIN ` + remove + ` ` + add + ` END`,
	}
	for i := range statements {
		statements[i] = replace.Replace(statements[i])
	}
	return statements
}

const selectWordsParts = `SELECT COUNT(*) FROM sqlite_schema WHERE name IN (
	'` + wordsTable + `', '` + wordsTable + `_insert', '` + wordsTable + `_delete', '` + wordsTable + `_update')`

// wordsParts is the number of names in selectWordsParts.
const wordsParts = 4

// restoreWords creates the full-text index if a part of it is missing, as after a restore of a copy without it. The table is
// emptied then, to be filled again.
func restoreWords(ctx context.Context, conn *binding.Conn, x *engine.TextIndex) error {
	if x == nil {
		return nil
	}
	var found int64
	if err := query.NewRow(ctx, source{conn}, selectWordsParts, nil).Scan(&found); err != nil || found == wordsParts {
		return err
	}
	return source{conn}.Transact(func() error {
		for _, sql := range wordsSchema(x) {
			if err := conn.Run(sql); err != nil {
				return fmt.Errorf("create the full-text index: %w", translate(err))
			}
		}
		return nil
	})
}

// wordsDamaged reports whether a check has found damage of the full-text index alone. It is derived, and is created again.
func wordsDamaged(err error) bool {
	return errors.Is(err, engine.ErrCorrupt) && strings.Contains(err.Error(), wordsTable)
}

// resetWords creates the full-text index again, empty. Its table is filled again.
func (e *Engine) resetWords(ctx context.Context) error {
	e.log.Warn("the full-text index is damaged; it is created again, and records are indexed in the background")
	return e.Write(ctx, func(tx engine.Tx) error {
		for _, sql := range wordsSchema(e.config.Texts) {
			if _, err := query.Exec(ctx, tx, sql, nil); err != nil {
				return fmt.Errorf("create the full-text index: %w", err)
			}
		}
		return nil
	})
}

const (
	selectMatching = `SELECT rowid FROM ` + wordsTable + ` WHERE ` + wordsTable + ` MATCH $1`
	selectSome     = selectMatching + ` ORDER BY rowid DESC LIMIT $2`
)

// Texts returns how statements search the full-text index.
func (e *Engine) Texts() engine.TextSearch {
	return engine.TextSearch{Matching: selectMatching, Some: selectSome, Expression: matchExpression}
}

// matchExpression returns a query in the language of FTS5. Words are quoted, so that none is an operator.
func matchExpression(q engine.TextQuery) string {
	return q.Expression(" OR ", " AND ", " *", func(word string) string { return `"` + strings.ReplaceAll(word, `"`, `""`) + `"` })
}
