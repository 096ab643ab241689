package storetest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"kontor/store"
)

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
