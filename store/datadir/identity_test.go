package datadir_test

import (
	"os"
	"path/filepath"
	"testing"

	"kontor/store/datadir"
)

// A file that is renamed stays the same one. A copy in its place is another one, also with the same content.
func TestIdentity_OfAFileForItsLife(t *testing.T) {
	dir := t.TempDir()
	path, moved := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	write := func(path string) {
		t.Helper()
		if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(path)
	first := datadir.Identity(path)
	write(path) // in place
	if err := os.Rename(path, moved); err != nil {
		t.Fatal(err)
	}
	if got := datadir.Identity(moved); !datadir.SameFile(first, got) {
		t.Errorf("renamed: %q, then %q", first, got)
	}
	write(path)
	if got := datadir.Identity(path); first != "" && datadir.SameFile(first, got) { // "" in file systems that do not identify files
		t.Errorf("a copy has the identity %q, too", got)
	}
	if got := datadir.Identity(filepath.Join(dir, "missing")); got != "" {
		t.Errorf("a missing file is %q", got)
	}
}

func TestSameFile(t *testing.T) {
	for pair, want := range map[[2]string]bool{
		{"12-5.000000001", "12-5.000000001"}: true,
		{"12-5.000000001", "12-5.000000002"}: false, // the number was used again
		{"12-5.000000001", "13-5.000000001"}: false,
		{"12", "12-5.000000001"}:             true, // the time was not known before
		{"12", "13-5.000000001"}:             false,
		{"", "12-5.000000001"}:               true,
		{"12", ""}:                           true,
	} {
		if got := datadir.SameFile(pair[0], pair[1]); got != want {
			t.Errorf("%q: %v", pair, got)
		}
	}
}
