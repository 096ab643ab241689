package commands_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// keyOf returns the master key of a data directory as its file holds it.
func keyOf(t *testing.T, dir string) string {
	t.Helper()
	key, err := os.ReadFile(filepath.Join(dir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	return string(key)
}

func TestBackup_LeavesOutTheKey(t *testing.T) {
	dir, work := newDataDir(t), t.TempDir()
	for _, flag := range []string{"", "--without-key"} {
		file, again := filepath.Join(work, "kontor.backup"+flag), filepath.Join(work, "again"+flag)
		args := []string{"backup", file, "--data.dir", dir}
		if flag != "" {
			args = append(args, flag)
		}
		expectSuccess(t, run(nil, "", args...), "does not contain the master key")
		expectFailure(t, run(nil, "", args...), "exists")
		data, err := os.ReadFile(file)
		if err != nil || strings.Contains(string(data), strings.TrimSpace(keyOf(t, dir))) || strings.Contains(string(data), "secret.key") {
			t.Errorf("the key is in the backup, %v", err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
		expectSuccess(t, run(nil, "", "restore", file, "--data.dir", again), "kontor key import FILE --data.dir="+again)
		if _, err := os.Stat(filepath.Join(again, "secret.key")); err == nil {
			t.Error("the restore created a key")
		}
	}
}

func TestBackup_WithKey(t *testing.T) {
	dir, work := newDataDir(t), t.TempDir()
	file, again := filepath.Join(work, "kontor.backup"), filepath.Join(work, "again")
	o := run(nil, "", "backup", "--with-key", file, "--data.dir", dir)
	if o.code != 0 || !strings.Contains(o.stderr, "kontor: warning: "+file+" contains the master key") {
		t.Errorf("exit %d, stderr %q", o.code, o.stderr)
	}
	o = run(nil, "", "restore", file, "--data.dir", again)
	expectSuccess(t, o, "1 audit entries")
	if strings.Contains(o.stdout, "key import") {
		t.Errorf("a backup with its key asks for it: %q", o.stdout)
	}
	expectSuccess(t, run(nil, "", "check", "--data.dir", again), "is intact")
	expectFailure(t, run(nil, "", "restore", file, "--data.dir", again), "empty directory")
	expectFailure(t, run(nil, "", "backup", "--with-key", "--without-key", file+"2", "--data.dir", dir), "without-key")
}

// A key from the environment is in the backup only on request.
func TestBackup_KeyOfTheEnvironment(t *testing.T) {
	dir, work := newDataDir(t), t.TempDir()
	key := keyOf(t, dir)
	if err := os.Remove(filepath.Join(dir, "secret.key")); err != nil {
		t.Fatal(err)
	}
	environ := []string{"KONTOR_SECRET_KEY=" + strings.TrimSpace(key)}
	wrong := []string{"KONTOR_SECRET_KEY=" + strings.Repeat("0", 64)}
	file, again := filepath.Join(work, "kontor.backup"), filepath.Join(work, "again")
	expectSuccess(t, run(environ, "", "backup", file, "--data.dir", dir), file)
	expectFailure(t, run(wrong, "", "restore", file, "--data.dir", again), "key")
	o := run(environ, "", "restore", file, "--data.dir", again)
	expectSuccess(t, o, "1 audit entries")
	if strings.Contains(o.stdout, "key import") {
		t.Errorf("a restore with the key asks for it: %q", o.stdout)
	}
	expectSuccess(t, run(environ, "", "check", "--data.dir", again), "is intact")
	expectSuccess(t, run(nil, "", "check", "--data.dir", again), "were not checked")
	expectFailure(t, run(wrong, "", "check", "--data.dir", again), "key")

	whole := filepath.Join(work, "whole")
	expectFailure(t, run(nil, "", "backup", "--with-key", whole, "--data.dir", dir), "secret key")
	expectFailure(t, run(wrong, "", "backup", "--with-key", whole, "--data.dir", dir), "another secret key")
	if o := run(environ, "", "backup", "--with-key", whole, "--data.dir", dir); o.code != 0 {
		t.Errorf("exit %d, stderr %q", o.code, o.stderr)
	}
	expectSuccess(t, run(nil, "", "restore", whole, "--data.dir", filepath.Join(work, "restored")), "1 audit entries")
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
