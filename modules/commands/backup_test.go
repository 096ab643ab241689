package commands_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBackupAndRestore(t *testing.T) {
	dir, work := newDataDir(t), t.TempDir()
	file, again := filepath.Join(work, "kontor.backup"), filepath.Join(work, "again")

	expectSuccess(t, run(nil, "", "backup", file, "--data.dir", dir), file)
	expectFailure(t, run(nil, "", "backup", file, "--data.dir", dir), "exists")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v: a backup holds the master key", info.Mode(), err)
	}

	expectSuccess(t, run(nil, "", "restore", file, "--data.dir", again), "1 audit entries")
	expectSuccess(t, run(nil, "", "check", "--data.dir", again), "is intact")
	expectFailure(t, run(nil, "", "restore", file, "--data.dir", again), "empty directory")
}

func TestBackup_WithoutKey(t *testing.T) {
	dir, work := newDataDir(t), t.TempDir()
	file, again := filepath.Join(work, "kontor.backup"), filepath.Join(work, "again")
	expectSuccess(t, run(nil, "", "backup", "--without-key", file, "--data.dir", dir), file)

	key, err := os.ReadFile(filepath.Join(dir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	environ := []string{"KONTOR_SECRET_KEY=" + strings.TrimSpace(string(key))}
	wrong := []string{"KONTOR_SECRET_KEY=" + strings.Repeat("0", 64)}
	expectFailure(t, run(wrong, "", "restore", file, "--data.dir", again), "key")
	expectSuccess(t, run(environ, "", "restore", file, "--data.dir", again), "1 audit entries")
	expectSuccess(t, run(environ, "", "check", "--data.dir", again), "is intact")
	expectSuccess(t, run(nil, "", "check", "--data.dir", again), "were not checked")
	expectFailure(t, run(wrong, "", "check", "--data.dir", again), "key")
}

func TestDatabaseCommands_RejectInvalidDirectories(t *testing.T) {
	empty := t.TempDir()
	expectFailure(t, run(nil, "", "check", "--data.dir", empty), empty)
	expectFailure(t, run(nil, "", "backup", filepath.Join(empty, "b"), "--data.dir", empty), empty)
	expectFailure(t, run(nil, "", "restore", filepath.Join(empty, "missing"), "--data.dir", filepath.Join(t.TempDir(), "d")), "missing")
	expectFailure(t, run(nil, "", "backup"), "<file>")
	expectFailure(t, run(nil, "", "restore", "/dev/null", "--data.dir", filepath.Join(t.TempDir(), "d")), "/dev/null")

	broken := newDataDir(t)
	name := filepath.Join(broken, "kontor.db")
	if err := os.WriteFile(name, []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	expectFailure(t, run(nil, "", "check", "--data.dir", broken), "damaged")
	expectFailure(t, run(nil, "", "backup", filepath.Join(empty, "b"), "--data.dir", broken), "damaged")
	if left, err := os.ReadDir(empty); err != nil || len(left) != 0 {
		t.Errorf("failed commands created %v, %v", left, err)
	}
}
