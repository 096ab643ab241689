// Package storetest gives tests a database of their own: on SQLite, or on PostgreSQL when KONTOR_TEST_ENGINE is "postgres".
//
//   - [Open] and [OpenWith] open a fresh database; [Options], [Unused] and [OpenAgain] are for tests that open one several times;
//   - [OpenShared] opens one that several nodes may use, always on PostgreSQL, and [Second] opens it again;
//   - [SQLiteOnly] is for tests of files and query plans.
package storetest

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kontor/store"
	"kontor/store/engine"
	"kontor/store/postgres"
	"kontor/store/postgres/postgrestest"
)

// OnPostgreSQL reports whether Open uses PostgreSQL.
func OnPostgreSQL() bool { return postgrestest.Chosen() }

// SQLiteOnly reports whether the test cannot run on the engine of this run, because it is about something that only SQLite
// has. The test must then return. It does not count as skipped: there is nothing to install.
func SQLiteOnly(t testing.TB, why string) bool {
	t.Helper()
	if OnPostgreSQL() {
		t.Logf("nothing is tested on PostgreSQL: %s", why)
	}
	return OnPostgreSQL()
}

// Open returns a fresh, migrated database with the system's clock. It is deleted at the end of the test.
func Open(t testing.TB) *store.DB {
	t.Helper()
	return OpenAgain(t, Options(t))
}

// OpenWith returns a fresh database with a clock of the test.
func OpenWith(t testing.TB, clock *Clock) *store.DB {
	t.Helper()
	o := Options(t)
	o.Clock = clock
	return OpenAgain(t, o)
}

// OpenShared returns a fresh database on PostgreSQL, whatever the engine of this run is. A nil clock is the system's.
func OpenShared(t testing.TB, clock *Clock) *store.DB {
	t.Helper()
	o := postgresOptions(t)
	if clock != nil {
		o.Clock = clock
	}
	return OpenAgain(t, o)
}

// Second opens the database of db, which must be on PostgreSQL, once more: with the same key and clock, as another node does.
func Second(t testing.TB, db *store.DB) *store.DB {
	t.Helper()
	o := OptionsOf(t, db)
	if o.URL == "" {
		t.Fatal("only a database on PostgreSQL can be opened twice")
	}
	return OpenAgain(t, o)
}

// OptionsOf returns the options that a database was opened with. Its key is the present one.
func OptionsOf(t testing.TB, db *store.DB) store.Options {
	t.Helper()
	o, known := opened.Load(db)
	if !known {
		t.Fatal("this package has not opened the database")
	}
	return o.(store.Options)
}

// Options returns the options of a fresh, migrated, closed database, for tests that open it several times.
func Options(t testing.TB) store.Options {
	t.Helper()
	if OnPostgreSQL() {
		return postgresOptions(t)
	}
	return store.Options{Dir: Dir(t)}
}

// Unused returns options under which there is no database yet.
func Unused(t testing.TB) store.Options {
	t.Helper()
	if OnPostgreSQL() {
		return store.Options{URL: postgrestest.URL(t), SecretKey: masterKey}
	}
	return store.Options{Dir: filepath.Join(t.TempDir(), "data")}
}

// opened holds the options of each open database.
var opened sync.Map

// OpenAgain opens a database that exists. It is closed at the end of the test, unless the test has closed it.
func OpenAgain(t testing.TB, o store.Options) *store.DB {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	if to := recording.Load(); to != nil && o.Engine == nil {
		o.Engine = to.open
	}
	db, err := store.Open(context.Background(), o)
	if err != nil {
		t.Fatalf("open the database: %v", err)
	}
	opened.Store(db, o)
	t.Cleanup(func() {
		opened.Delete(db)
		if err := db.Close(); err != nil {
			t.Errorf("close the database: %v", err)
		}
	})
	return db
}

// Dir returns a data directory with a fresh, migrated, closed database.
func Dir(t testing.TB) string {
	t.Helper()
	files, err := template()
	if err != nil {
		t.Fatalf("make a database: %v", err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// template creates a database once for all tests of a process: copying its files is much faster.
var template = sync.OnceValues(func() (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "storetest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	db, err := store.Open(context.Background(), store.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	files := make(map[string][]byte)
	for _, name := range []string{"kontor.db", "secret.key"} {
		if files[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return files, nil
})

// Plan returns the steps of the query plan for a statement, in the words of SQLite.
func Plan(t testing.TB, db *store.DB, sql string, args ...any) []string {
	t.Helper()
	steps, err := db.Explain(t.Context(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return steps
}

// PlanOfNulls is [Plan] for a statement with up to nine parameters, which are all NULL.
func PlanOfNulls(t testing.TB, db *store.DB, sql string) []string {
	t.Helper()
	parameters := 0
	for n := 1; n <= 9; n++ {
		if strings.Contains(sql, "$"+strconv.Itoa(n)) {
			parameters = n
		}
	}
	return Plan(t, db, sql, make([]any, parameters)...)
}

// masterKey is the master key of all databases on PostgreSQL, which have no directory to keep it in.
var masterKey = strings.Repeat("5eed", 16)

// postgresOptions returns the options of a fresh, migrated database on PostgreSQL. It is dropped at the end of the test.
func postgresOptions(t testing.TB) store.Options {
	t.Helper()
	address := postgrestest.Copy(t, "kontor", func(address string) error {
		db, err := store.Open(context.Background(), store.Options{URL: address, SecretKey: masterKey, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		return db.Close()
	})
	return store.Options{URL: address, SecretKey: masterKey}
}

// Isolated opens the database of db, which must be on PostgreSQL, as a node that receives no announcements. Without a lease it must read
// everything from the database. With one, it is a node that other nodes are still waiting for.
func Isolated(t testing.TB, db *store.DB, lease bool) *store.DB {
	t.Helper()
	o := OptionsOf(t, db)
	o.Engine = func(ctx context.Context, c engine.Config) (engine.Engine, engine.Report, error) {
		e, report, err := postgres.Open(ctx, c)
		return isolated{e, lease}, report, err
	}
	return OpenAgain(t, o)
}

type isolated struct {
	engine.Engine
	lease bool
}

// Topic registers no receiver.
func (d isolated) Topic(name string, _ func(key string)) *engine.Topic {
	return d.Engine.Topic(name, func(string) {})
}

// Remembers reports whether the node has a lease.
func (d isolated) Remembers() bool { return d.lease }

// Clock is a clock that moves only when a test moves it.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that shows a fixed moment: 31 January 2026, 08:15:30.123 UTC.
func NewClock() *Clock {
	return &Clock{now: time.Date(2026, time.January, 31, 8, 15, 30, 123e6, time.UTC)}
}

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Set moves the clock to t.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}
