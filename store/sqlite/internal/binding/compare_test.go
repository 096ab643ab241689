package binding_test

import (
	"os"
	"path/filepath"
	"testing"

	"kontor/store/sqlite/internal/binding"
)

// ComparePages finds each change of a closed database, also a missing end.
func TestComparePages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	conn, err := binding.Open(path, binding.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"PRAGMA journal_mode = WAL", "CREATE TABLE a (b)", "INSERT INTO a VALUES (zeroblob(600000))"} {
		if err := conn.Run(statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	compare := func(content []byte) bool {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		intact, err := binding.ComparePages(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		return intact
	}
	if !compare(whole) {
		t.Error("a database that was closed differs")
	}
	for _, at := range []int{0, 20, 24, 28, 500, 4096, 4095, len(whole) / 2, len(whole) - 1} {
		changed := append([]byte(nil), whole...)
		changed[at] ^= 4
		if compare(changed) {
			t.Errorf("a change of byte %d is not found", at)
		}
	}
	for _, length := range []int{0, 50, 4096, len(whole) / 2, len(whole) - 1} {
		if compare(whole[:length]) {
			t.Errorf("a file of %d bytes of %d is intact", length, len(whole))
		}
	}
}
