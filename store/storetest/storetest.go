// Package storetest gives tests a database of their own: on SQLite, or on PostgreSQL when KONTOR_TEST_ENGINE is "postgres".
//
//   - [Open] and [OpenWith] open a fresh database; [Options], [Unused] and [OpenAgain] are for tests that open one several times;
//   - [OpenShared] opens one that several nodes may use, always on PostgreSQL, and [Second] opens it again;
//   - [SQLiteOnly] is for tests of files and query plans.
package storetest

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"kontor/store"
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
