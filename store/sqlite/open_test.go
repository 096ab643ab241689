package sqlite_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/store"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

// expectRejected opens a directory and expects one line of error and unchanged files.
func expectRejected(t *testing.T, o store.Options, kind error, says ...string) {
	t.Helper()
	before := contents(t, o.Dir)
	db, err := store.Open(t.Context(), o)
	if err == nil {
		db.Close()
		t.Fatal("opened")
	}
	if kind != nil && !errors.Is(err, kind) {
		t.Errorf("got %v, want %v", err, kind)
	}
	for _, s := range append(says, o.Dir) {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q does not say %q", err, s)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %q", err)
	}
	for name, data := range before {
		if after := contents(t, o.Dir); after[name] != data {
			t.Errorf("%s was changed", name)
		}
	}
}

// contents reads the data files.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range []string{"kontor.db", "secret.key"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			files[name] = string(data)
		}
	}
	return files
}

func TestOpen_CreatesAPrivateDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "data")
	db := openDir(t, dir)
	storetest.Audit(t, db, 1)
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory has mode %v, err %v", info.Mode(), err)
	}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, err %v", path, info.Mode(), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestOpen_RejectsASecondProcess(t *testing.T) {
	dir := storetest.Dir(t)
	db := openDir(t, dir)
	expectRejected(t, store.Options{Dir: dir}, store.ErrInUse, fmt.Sprintf("process %d", os.Getpid()))
	db.Close()
	openDir(t, dir)
}

func TestOpen_RejectsAnUnwritableDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	expectRejected(t, store.Options{Dir: file}, nil)
	expectRejected(t, store.Options{Dir: filepath.Join(file, "data")}, nil)
}

func TestOpen_RejectsAnotherKey(t *testing.T) {
	dir := storetest.Dir(t)
	expectRejected(t, store.Options{Dir: dir, SecretKey: strings.Repeat("ab", 32)}, store.ErrWrongKey)
	expectRejected(t, store.Options{Dir: dir, SecretKey: strings.Repeat("ab", 32)}, store.ErrWrongKey)

	if err := os.Remove(filepath.Join(dir, "secret.key")); err != nil {
		t.Fatal(err)
	}
	expectRejected(t, store.Options{Dir: dir}, fs.ErrNotExist, "secret.key")
	if _, err := os.Stat(filepath.Join(dir, "secret.key")); err == nil {
		t.Error("a new key was made for a database that has another")
	}
}

func TestOpen_RejectsAKeyOfTheWrongLength(t *testing.T) {
	for _, key := range []string{"short", strings.Repeat("ab", 31), strings.Repeat("xy", 32)} {
		if db, err := store.Open(t.Context(), store.Options{Dir: storetest.Dir(t), SecretKey: key}); err == nil {
			db.Close()
			t.Errorf("key %q was accepted", key)
		}
	}
}

func TestOpen_DoesNotStoreAGivenKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	key := strings.Repeat("0f", 32)
	for range 2 {
		db, err := store.Open(t.Context(), store.Options{Dir: dir, SecretKey: key})
		if err != nil {
			t.Fatal(err)
		}
		db.Close()
	}
	if _, err := os.Stat(filepath.Join(dir, "secret.key")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("key file: %v, want none", err)
	}
}

func TestOpen_RejectsADamagedDatabase(t *testing.T) {
	for name, damage := range map[string]func(data []byte) []byte{
		"no database":     func([]byte) []byte { return []byte("hello, this is no database at all") },
		"header":          func(b []byte) []byte { copy(b, strings.Repeat("\xff", 100)); return b },
		"middle":          func(b []byte) []byte { copy(b[len(b)/2:], strings.Repeat("\xff", 4096)); return b },
		"first page":      func(b []byte) []byte { copy(b[100:], strings.Repeat("\xff", 3000)); return b },
		"cut off":         func(b []byte) []byte { return b[:len(b)/2] },
		"emptied":         func([]byte) []byte { return nil },
		"pages exchanged": func(b []byte) []byte { copy(b[4096:8192], b[8192:12288]); return b },
	} {
		t.Run(name, func(t *testing.T) {
			dir := storetest.Dir(t)
			path := filepath.Join(dir, "kontor.db")
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, damage(data), 0o600); err != nil {
				t.Fatal(err)
			}
			expectRejected(t, store.Options{Dir: dir}, store.ErrCorrupt)
			if _, err := inspect.Check(t.Context(), inspect.Source{Dir: dir}, nil); !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("the check says %v, want %v", err, store.ErrCorrupt)
			}
		})
	}
}

func TestOpen_RejectsALogWithoutItsDatabase(t *testing.T) {
	dir := storetest.Dir(t)
	path := filepath.Join(dir, "kontor.db")
	if err := os.Rename(path, path+"-wal"); err != nil {
		t.Fatal(err)
	}
	expectRejected(t, store.Options{Dir: dir}, nil, "kontor.db-wal")
}

func TestOpen_RejectsOtherDatabases(t *testing.T) {
	dir := storetest.Dir(t)
	run(t, dir, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, TRUE)`)
	expectRejected(t, store.Options{Dir: dir}, store.ErrNewerSchema, "9999")

	dir = storetest.Dir(t)
	run(t, dir, `DROP TABLE goose_db_version`)
	expectRejected(t, store.Options{Dir: dir}, nil, "another program")
}

func TestOpen_AcceptsARelativePath(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"data", "./other", "a b?c#d%20"} {
		db, err := store.Open(t.Context(), store.Options{Dir: dir})
		if err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
