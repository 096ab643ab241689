package commands_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/store"
)

// newDatabase makes a data directory with an entry in its audit trail.
func newDatabase(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	db, err := store.Open(t.Context(), store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	err = db.InTx(t.Context(), func(tx *store.Tx) error {
		tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "test", RecType: "users", RecID: store.NewID()})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestBackupAndRestore(t *testing.T) {
	dir, work := newDatabase(t), t.TempDir()
	file, again := filepath.Join(work, "kontor.backup"), filepath.Join(work, "again")

	succeeded(t, run(nil, "", "backup", file, "--data.dir", dir), file)
	refused(t, run(nil, "", "backup", file, "--data.dir", dir), "exists")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v: a backup holds the master key", info.Mode(), err)
	}

	succeeded(t, run(nil, "", "restore", file, "--data.dir", again), "1 audit entries")
	succeeded(t, run(nil, "", "check", "--data.dir", again), "is whole")
	refused(t, run(nil, "", "restore", file, "--data.dir", again), "empty directory")
}

func TestBackup_WithoutKey(t *testing.T) {
	dir, work := newDatabase(t), t.TempDir()
	file, again := filepath.Join(work, "kontor.backup"), filepath.Join(work, "again")
	succeeded(t, run(nil, "", "backup", "--without-key", file, "--data.dir", dir), file)

	key, err := os.ReadFile(filepath.Join(dir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	environ := []string{"KONTOR_SECRET_KEY=" + strings.TrimSpace(string(key))}
	wrong := []string{"KONTOR_SECRET_KEY=" + strings.Repeat("0", 64)}
	refused(t, run(wrong, "", "restore", file, "--data.dir", again), "key")
	succeeded(t, run(environ, "", "restore", file, "--data.dir", again), "1 audit entries")
	succeeded(t, run(environ, "", "check", "--data.dir", again), "is whole")
	succeeded(t, run(nil, "", "check", "--data.dir", again), "unproven")
	refused(t, run(wrong, "", "check", "--data.dir", again), "key")
}

func TestDatabaseCommands_Refused(t *testing.T) {
	empty := t.TempDir()
	refused(t, run(nil, "", "check", "--data.dir", empty), empty)
	refused(t, run(nil, "", "backup", filepath.Join(empty, "b"), "--data.dir", empty), empty)
	refused(t, run(nil, "", "restore", filepath.Join(empty, "missing"), "--data.dir", filepath.Join(t.TempDir(), "d")), "missing")
	refused(t, run(nil, "", "backup"), "<file>")
	refused(t, run(nil, "", "restore", "/dev/null", "--data.dir", filepath.Join(t.TempDir(), "d")), "/dev/null")

	broken := newDatabase(t)
	name := filepath.Join(broken, "kontor.db")
	if err := os.WriteFile(name, []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, run(nil, "", "check", "--data.dir", broken), "damaged")
	refused(t, run(nil, "", "backup", filepath.Join(empty, "b"), "--data.dir", broken), "damaged")
	if left, err := os.ReadDir(empty); err != nil || len(left) != 0 {
		t.Errorf("failed commands left %v behind, %v", left, err)
	}
}
