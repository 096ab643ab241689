// Package enginetest proves that an engine keeps the contract of package engine.
//
// An engine's own test calls Run:
//
//	func TestEngine_KeepsTheContract(t *testing.T) { enginetest.Run(t, sqlite.Open, enginetest.InDirectory) }
//
// Tests that need faults of a particular engine (a disk that fails or hangs, damaged files) are that engine's own.
package enginetest

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"testing"
	"testing/fstest"

	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/query"
)

// Open opens the database of a data directory, as an engine's own function does.
type Open func(context.Context, engine.Config) (engine.Engine, engine.Report, error)

// Place finds a place for a new database. It returns a function that sets the place in the configuration of each start.
type Place func(t *testing.T) func(*engine.Config)

// InDirectory places a database in a data directory of its own.
func InDirectory(t *testing.T) func(*engine.Config) {
	t.Helper()
	path := t.TempDir()
	if err := os.Chmod(path, datadir.DirMode); err != nil {
		t.Fatal(err)
	}
	dir, err := datadir.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return func(c *engine.Config) { c.Dir = dir }
}

// Run runs all tests of the contract, each on a database of its own.
func Run(t *testing.T, open Open, place Place) {
	for _, group := range []map[string]func(*testing.T, *database){
		atomicity, durability, groups, hooks, deadlines, nesting, errorKinds, values, reading, fairness, versions, lifecycle, opening, ledgers,
		announcements,
	} {
		for name, test := range group {
			t.Run(name, func(t *testing.T) { test(t, newDatabase(t, open, place)) })
		}
	}
}

// schema creates the tables of the tests.
const schema = `-- +goose Up
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE items (
	name TEXT PRIMARY KEY,
	amount BIGINT NOT NULL DEFAULT 0 CHECK (amount >= 0)
);
CREATE TABLE children (
	name TEXT PRIMARY KEY,
	item TEXT NOT NULL REFERENCES items (name)
);
CREATE TABLE entries (seq BIGINT PRIMARY KEY, text TEXT NOT NULL);
-- +goose Down
DROP TABLE entries;
`

// database is an open database of a test.
type database struct {
	engine.Engine
	open   Open
	place  func(*engine.Config)
	ledger *ledger
	report engine.Report
}

func newDatabase(t *testing.T, open Open, place Place) *database {
	t.Helper()
	db := &database{open: open, place: place(t)}
	db.start(t)
	return db
}

// start opens the database, or opens it again after Close.
func (db *database) start(t *testing.T) {
	t.Helper()
	db.ledger = &ledger{}
	e, report, err := db.open(context.Background(), db.config(t))
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	db.Engine, db.report = e, report
	t.Cleanup(func() { e.Close() })
}

func (db *database) config(t *testing.T) engine.Config {
	c := engine.Config{
		Clock: clock.System{}, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Migrations: fstest.MapFS{"0001_tables.sql": {Data: []byte(schema)}},
		AppendOnly: []string{"entries"},
		Guard:      func(bool) (engine.Guard, error) { return guard{db.ledger}, nil },
	}
	db.place(&c)
	return c
}

const insertItem = `INSERT INTO items (name) VALUES ($1)`

// insert inserts an item within a job.
func insert(tx engine.Tx, name string) error {
	_, err := query.Exec(context.Background(), tx, insertItem, []any{name})
	return err
}

// write runs a job that inserts items.
func (db *database) write(ctx context.Context, names ...string) error {
	return db.Write(ctx, func(tx engine.Tx) error {
		for _, name := range names {
			if err := insert(tx, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// has fails the test unless the database has exactly so many of the named items.
func (db *database) has(t *testing.T, want int, names ...string) {
	t.Helper()
	found := 0
	for _, name := range names {
		var n int
		if err := db.queryRow(t.Context(), `SELECT COUNT(*) FROM items WHERE name = $1`, name).Scan(&n); err != nil {
			t.Fatal(err)
		}
		found += n
	}
	if found != want {
		t.Errorf("%d of the items %v are there, want %d", found, names, want)
	}
}

func (db *database) queryRow(ctx context.Context, sql string, args ...any) *query.Row {
	return query.NewRow(ctx, db.Engine, sql, args)
}

// version returns the version of tables.
func (db *database) version(t *testing.T, tables ...string) uint64 {
	t.Helper()
	n, err := db.Version(t.Context(), tables...)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// busyWriter keeps the writer in a job until release is called, which waits for the end of the job.
func (db *database) busyWriter(t *testing.T) (release func()) {
	t.Helper()
	begun, end, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	begin := sync.OnceFunc(func() { close(begun) }) // the job may run again
	go func() {
		done <- db.Write(context.Background(), func(engine.Tx) error {
			begin()
			<-end
			return nil
		})
	}()
	<-begun
	return sync.OnceFunc(func() {
		close(end)
		if err := <-done; err != nil {
			t.Errorf("the job that kept the writer busy: %v", err)
		}
	})
}

// enqueue calls Write on a goroutine of its own and returns when the job waits, or has its answer.
func (db *database) enqueue(ctx context.Context, job func(engine.Tx) error) (result chan error) {
	result = make(chan error, 1)
	before := db.Stats().Queued
	go func() { result <- db.Write(ctx, job) }()
	for db.Stats().Queued == before && len(result) == 0 {
		runtime.Gosched()
	}
	return result
}

// is fails the test unless an error is of a kind.
func is(t *testing.T, what string, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: got %v, want %v", what, err, kind)
	}
}

// none fails the test when there is an error.
func none(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

func nothing(engine.Tx) error { return nil }

// refusing is a guard that rejects a database at its start.
type refusing struct {
	guard
	recognise, settle error
}

func (r refusing) Recognise(context.Context, engine.Source) (bool, error) { return true, r.recognise }
func (r refusing) Settle(context.Context, engine.Maintenance) error       { return r.settle }

// opening tests what an engine does before it serves.
var opening = map[string]func(*testing.T, *database){
	"a database of a newer program is refused": func(t *testing.T, db *database) {
		none(t, "write", db.write(t.Context(), "a"))
		none(t, "close", db.Close())
		c := db.config(t)
		c.Migrations = fstest.MapFS{}
		_, _, err := db.open(t.Context(), c)
		is(t, "open", err, engine.ErrNewerSchema)
		db.start(t)
		db.has(t, 1, "a")
	},
	"new migrations are applied once": func(t *testing.T, db *database) {
		none(t, "write", db.write(t.Context(), "a"))
		for range 2 {
			none(t, "close", db.Close())
			c := db.config(t)
			c.Migrations = fstest.MapFS{
				"0001_tables.sql": {Data: []byte(schema)},
				"0002_more.sql":   {Data: []byte("-- +goose Up\nUPDATE items SET amount = amount + 1;\n-- +goose Down\nSELECT 1;\n")},
			}
			e, _, err := db.open(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { e.Close() })
			db.Engine = e
		}
		var amount int
		none(t, "read", db.queryRow(t.Context(), `SELECT amount FROM items`).Scan(&amount))
		if amount != 1 {
			t.Errorf("the migration was applied %d times", amount)
		}
	},
	"a migration that fails changes nothing": func(t *testing.T, db *database) {
		none(t, "write", db.write(t.Context(), "a"))
		none(t, "close", db.Close())
		c := db.config(t)
		c.Migrations = fstest.MapFS{
			"0001_tables.sql": {Data: []byte(schema)},
			"0002_wrong.sql":  {Data: []byte("-- +goose Up\nDELETE FROM items;\nINSERT INTO nowhere VALUES (1);\n-- +goose Down\nSELECT 1;\n")},
		}
		if _, _, err := db.open(t.Context(), c); err == nil {
			t.Error("a database with a failed migration was opened")
		}
		db.start(t)
		db.has(t, 1, "a")
	},
	"a database that the guard refuses is not opened": func(t *testing.T, db *database) {
		none(t, "write", db.write(t.Context(), "a"))
		none(t, "close", db.Close())
		errGuard := errors.New("rejected by the guard")
		for name, refuses := range map[string]refusing{
			"Recognise": {recognise: errGuard},
			"Settle":    {settle: errGuard},
		} {
			c := db.config(t)
			c.Guard = func(fresh bool) (engine.Guard, error) {
				if fresh {
					t.Error("an existing database counts as new")
				}
				refuses.guard = guard{&ledger{}}
				return refuses, nil
			}
			_, _, err := db.open(t.Context(), c)
			is(t, name, err, errGuard)
		}
		c := db.config(t)
		c.Guard = func(bool) (engine.Guard, error) { return nil, errGuard }
		_, _, err := db.open(t.Context(), c)
		is(t, "Guard", err, errGuard)
		db.start(t)
		db.has(t, 1, "a")
	},
}
