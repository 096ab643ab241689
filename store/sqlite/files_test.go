package sqlite_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/store"
	"kontor/store/backup"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

// put writes files into a data directory.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func move(t *testing.T, dir, from, to string) {
	t.Helper()
	if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
		t.Fatal(err)
	}
}

func TestOpen_DoesNotReplaceALostDatabase(t *testing.T) {
	dir := storetest.Dir(t)
	move(t, dir, "kontor.db", "elsewhere")
	expectRejected(t, store.Options{Dir: dir}, nil, "kontor.db is missing but its key secret.key is there", "put the database back")
	expectRejected(t, store.Options{Dir: dir, SecretKey: strings.Repeat("0f", 32)}, nil, "put the database back")
	if _, err := os.Stat(filepath.Join(dir, "kontor.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a database was begun: %v", err)
	}
	move(t, dir, "elsewhere", "kontor.db")
	openDir(t, dir)
}

func TestOpen_RepeatsAnInterruptedFirstStart(t *testing.T) {
	key := strings.Repeat("0f", 32) + "\n"
	for name, left := range map[string]map[string]string{
		"announced":       {"kontor.db.new": ""},
		"half a key":      {"kontor.db.new": "", "secret.key.new": key[:10]},
		"a key":           {"kontor.db.new": "", "secret.key": key},
		"half a database": {"kontor.db.new": "SQLite format 3\x00 and no more", "kontor.db.new-wal": "xyz", "kontor.db.new-journal": "xyz", "secret.key": key},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			put(t, dir, left)
			storetest.Audit(t, openDir(t, dir), 1)
			if now, err := os.ReadFile(filepath.Join(dir, "secret.key")); err != nil || left["secret.key"] != "" && string(now) != key {
				t.Errorf("the key is %q, %v", now, err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*.new*")); left != nil {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestRestore_RepeatsAnInterruptedRestore(t *testing.T) {
	source, file := storetest.Dir(t), filepath.Join(t.TempDir(), "kontor.backup")
	if _, err := backup.Create(t.Context(), inspect.Source{Dir: source}, file, backup.Options{WithKey: true}); err != nil {
		t.Fatal(err)
	}
	for name, left := range map[string]map[string]string{
		"announced":       {"kontor.db.restoring": ""},
		"another backup":  {"kontor.db.restoring": "", "secret.key.restoring": strings.Repeat("0f", 32)},
		"half a database": {"kontor.db.restoring": "SQLite format 3\x00 and no more", "kontor.db.restoring-wal": "xyz", "secret.key.restoring": "x", "kontor.lock": ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			put(t, dir, left)
			expectRejected(t, store.Options{Dir: dir}, nil, "was interrupted: run it again")
			if _, err := backup.Restore(t.Context(), []string{file}, inspect.Source{Dir: dir}); err != nil {
				t.Fatal(err)
			}
			openDir(t, dir)
			if left, _ := filepath.Glob(filepath.Join(dir, "*.restoring*")); left != nil {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestOpen_RenamesTheKeyOfAnInterruptedRestore(t *testing.T) {
	dir := storetest.Dir(t)
	move(t, dir, "secret.key", "secret.key.restoring")
	if report, err := inspect.Check(t.Context(), inspect.Source{Dir: dir}, nil); err != nil || !report.KeyChecked {
		t.Errorf("the check beside it: %+v, %v", report, err)
	}
	file := filepath.Join(t.TempDir(), "kontor.backup")
	if _, err := backup.Create(t.Context(), inspect.Source{Dir: dir}, file, backup.Options{WithKey: true}); err != nil {
		t.Errorf("the backup beside it: %v", err)
	}
	openDir(t, dir)
	if _, err := os.Stat(filepath.Join(dir, "secret.key")); err != nil {
		t.Error(err)
	}
}
