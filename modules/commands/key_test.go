package commands_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/store"
)

// restoredWithoutKey returns a data directory that was restored from a backup without its key.
func restoredWithoutKey(t *testing.T, dir string) string {
	t.Helper()
	file, restored := filepath.Join(t.TempDir(), "kontor.backup"), filepath.Join(t.TempDir(), "restored")
	expectSuccess(t, run(nil, "", "backup", file, "--data.dir", dir), file)
	expectSuccess(t, run(nil, "", "restore", file, "--data.dir", restored), restored)
	return restored
}

func TestKey_MovesFromOneDirectoryToAnother(t *testing.T) {
	dir := newDataDir(t)
	restored := restoredWithoutKey(t, dir)
	file := filepath.Join(t.TempDir(), "kontor.key")

	expectSuccess(t, run(nil, "", "key", "export", file, "--data.dir", dir), file)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	expectFailure(t, run(nil, "", "key", "export", file, "--data.dir", dir), "exists")
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".*")); left != nil {
		t.Errorf("the export leaves %v", left)
	}
	o := run(nil, "", "key", "export", "-", "--data.dir", dir)
	if exported, err := os.ReadFile(file); err != nil || o.stdout != string(exported) || o.stdout != keyOf(t, dir) || o.code != 0 {
		t.Errorf("exit %d, stderr %q; file, output and key differ, %v", o.code, o.stderr, err)
	}

	expectFailure(t, run(nil, "", "user", "role", "a@b.ch", "--data.dir", restored), "kontor key import FILE")
	expectSuccess(t, run(nil, "", "key", "import", file, "--data.dir", restored), "imported")
	expectSuccess(t, run(nil, "", "key", "import", file, "--data.dir", restored), "imported") // a repetition
	expectSuccess(t, run(nil, "", "check", "--data.dir", restored), "is intact")
	if info, err := os.Stat(filepath.Join(restored, "secret.key")); err != nil || info.Mode().Perm() != 0o600 || keyOf(t, restored) != keyOf(t, dir) {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	db, err := store.Open(t.Context(), store.Options{Dir: restored})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	expectFailure(t, run(nil, "", "key", "import", file, "--data.dir", restored), "in use")
	expectSuccess(t, run(nil, "", "key", "export", "-", "--data.dir", restored), strings.TrimSpace(keyOf(t, dir)))
}

func TestKeyImport_RejectsOtherKeys(t *testing.T) {
	dir := newDataDir(t)
	restored, key := restoredWithoutKey(t, dir), filepath.Join(dir, "secret.key")
	other := keyOf(t, newDataDir(t))
	for _, c := range []struct{ name, input, want string }{
		{"a key of another database", other, "another secret key"},
		{"no key", "", "32 bytes"},
		{"half a key", keyOf(t, dir)[:32], "32 bytes"},
		{"a large file", strings.Repeat("0", 1<<20), "32 bytes"},
	} {
		expectFailure(t, run(nil, c.input, "key", "import", "-", "--data.dir", restored), c.want)
		if entries, _ := filepath.Glob(filepath.Join(restored, "secret*")); entries != nil {
			t.Errorf("%s: created %v", c.name, entries)
		}
	}
	for _, present := range []string{other, "not a key"} {
		if err := os.WriteFile(filepath.Join(restored, "secret.key"), []byte(present), 0o600); err != nil {
			t.Fatal(err)
		}
		expectFailure(t, run(nil, "", "key", "import", key, "--data.dir", restored), "holds another master key")
		if keyOf(t, restored) != present {
			t.Error("the key was replaced")
		}
	}
	missing := filepath.Join(t.TempDir(), "missing")
	expectFailure(t, run(nil, "", "key", "import", key, "--data.dir", missing), missing)
	expectFailure(t, run(nil, "", "key", "import", missing, "--data.dir", restored), missing)
	if _, err := os.Stat(missing); err == nil {
		t.Error("the import created a directory")
	}
}

func TestKeyExport_RejectsWrongKeys(t *testing.T) {
	dir := newDataDir(t)
	file := filepath.Join(t.TempDir(), "kontor.key")
	expectFailure(t, run([]string{"KONTOR_SECRET_KEY=" + strings.Repeat("0", 64)}, "", "key", "export", file, "--data.dir", dir), "another secret key")
	expectFailure(t, run(nil, "", "key", "export", file, "--data.dir", restoredWithoutKey(t, dir)), "secret key")
	expectFailure(t, run(nil, "", "key", "export", file, "--data.dir", t.TempDir()), "kontor.db")
	if left, _ := os.ReadDir(filepath.Dir(file)); len(left) != 0 {
		t.Errorf("failed exports leave %v", left)
	}
}
