package sqlite_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"kontor/store"
	"kontor/store/engine"
	"kontor/store/sqlite"
	"kontor/store/sqlite/internal/binding"
	"kontor/store/storetest"
)

// engines holds the engine of each open database of the tests.
var engines sync.Map // *store.DB → *sqlite.Engine

// engineOf returns the engine of a database that open or openDir has opened.
func engineOf(db *store.DB) *sqlite.Engine {
	e, _ := engines.Load(db)
	return e.(*sqlite.Engine)
}

// openWith opens a database so that engineOf finds its engine.
func openWith(ctx context.Context, o store.Options) (*store.DB, error) {
	var opened *sqlite.Engine
	o.Engine = func(ctx context.Context, c engine.Config) (engine.Engine, engine.Report, error) {
		e, report, err := sqlite.Open(ctx, c)
		if err == nil {
			opened = e.(*sqlite.Engine)
		}
		return e, report, err
	}
	db, err := store.Open(ctx, o)
	if err == nil {
		engines.Store(db, opened)
	}
	return db, err
}

// open opens a fresh database.
func open(t testing.TB) *store.DB {
	t.Helper()
	db, err := openWith(context.Background(), store.Options{Dir: storetest.Dir(t), Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatalf("open the database: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the database: %v", err)
		}
	})
	return db
}

// openDir opens the database of a directory.
func openDir(t testing.TB, dir string) *store.DB {
	t.Helper()
	db, err := openWith(context.Background(), store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// run changes a database without the store, and keeps the checksums of its pages correct.
func run(t testing.TB, dir string, statements ...string) {
	t.Helper()
	conn, err := binding.Open(filepath.Join(dir, "kontor.db"), binding.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, s := range statements {
		if err := conn.Run(s); err != nil {
			t.Fatal(err)
		}
	}
}

// claimed identifies a request that may be repeated.
var claimed = store.Idempotency{Key: "k1", Caller: "user", Path: "POST /v1/roles", BodyHash: []byte("hash of the body")}
