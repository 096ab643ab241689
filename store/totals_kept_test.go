package store_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"kontor/store"
	"kontor/store/storetest"
)

const insertMany = `INSERT INTO counted (id, owner, number)
	WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT 'row ' || i, $1, i FROM n`

// openKept opens a database in a directory, whose totals are kept when it is closed.
func openKept(t *testing.T, dir string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// newKept opens a new directory with the table counted, unless this engine keeps no totals.
func newKept(t *testing.T) (dir string, db *store.DB) {
	t.Helper()
	if storetest.SQLiteOnly(t, "only a database in a directory keeps totals there") {
		return "", nil
	}
	dir = t.TempDir()
	db = openKept(t, dir)
	change(t, db, createCounted)
	return dir, db
}

func closeKept(t *testing.T, db *store.DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// unusable returns the total of anna's rows with a statement that fails: only a total that is kept is returned.
func unusable() *store.Counting {
	c := countingOf("anna")
	c.SQL = `SELECT NULL AS value, count(*) AS rows FROM counted WHERE owner = $1 AND missing = 1`
	return c
}

// keptDirectory returns a directory with a database whose total of 100,001 rows was kept.
func keptDirectory(t *testing.T) string {
	t.Helper()
	dir, db := newKept(t)
	if db == nil {
		return ""
	}
	change(t, db, insertMany, "anna")
	change(t, db, `INSERT INTO counted (id, owner, number) VALUES ('of bob', 'bob', 1)`)
	expectRows(t, db, "anna", 100_000)
	expectRows(t, db, "bob", 1)
	change(t, db, `UPDATE counted SET owner = 'anna' WHERE id = 'of bob'`) // the stop brings the total up to date
	closeKept(t, db)
	return dir
}

func TestTotals_AreKeptWhileNoProcessRuns(t *testing.T) {
	dir := keptDirectory(t)
	if dir == "" {
		return
	}
	db := openKept(t, dir)
	if n, err := db.CountRows(t.Context(), "anna", unusable()); err != nil || n != 100_001 {
		t.Errorf("the kept total is %d, %v", n, err)
	}
	change(t, db, `DELETE FROM counted WHERE number < 10`)
	expectRows(t, db, "anna", 100_001-10)
	change(t, db, `UPDATE counted SET owner = 'bob' WHERE number = 20`)
	expectRows(t, db, "anna", 100_001-11)
	expectRows(t, db, "bob", 1)
	closeKept(t, db)
	db = openKept(t, dir)
	expectRows(t, db, "anna", 100_001-11)
	closeKept(t, db)
}

// A total of another state of the database is not used: after a process that did not stop in order, or in a restored directory.
func TestTotals_OfAnotherStateAreNotUsed(t *testing.T) {
	dir := keptDirectory(t)
	if dir == "" {
		return
	}
	path := filepath.Join(dir, store.TotalsName)
	former := readFile(t, dir, store.TotalsName)
	db := openKept(t, dir)
	if present, err := os.ReadFile(path); err != nil || string(present) == string(former) {
		t.Errorf("the file still names the state: %v", err)
	}
	change(t, db, `DELETE FROM counted WHERE number < 10`)
	closeKept(t, db)
	if err := os.WriteFile(path, former, 0o600); err != nil {
		t.Fatal(err)
	}
	db = openKept(t, dir)
	expectRows(t, db, "anna", 100_001-10)
	closeKept(t, db)
}

func TestTotals_FileThatCannotBeReadIsRemoved(t *testing.T) {
	dir := keptDirectory(t)
	if dir == "" {
		return
	}
	path := filepath.Join(dir, store.TotalsName)
	kept := readFile(t, dir, store.TotalsName)
	kept[len(kept)/2] ^= 1
	for _, content := range [][]byte{kept, nil, []byte("short")} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		db := openKept(t, dir)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q is still there: %v", content, err)
		}
		expectRows(t, db, "anna", 100_001)
		closeKept(t, db)
	}
}

// A small database has no such file.
func TestTotals_FewRowsAreNotKept(t *testing.T) {
	dir, db := newKept(t)
	if db == nil {
		return
	}
	change(t, db, `INSERT INTO counted (id, owner, number) VALUES ('of anna', 'anna', 1)`)
	expectRows(t, db, "anna", 1)
	closeKept(t, db)
	if _, err := os.Stat(filepath.Join(dir, store.TotalsName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a file: %v", err)
	}
}

// After a process that did not stop in order, totals without arguments are counted again in the background.
func TestTotals_AreCountedAgainAfterACrash(t *testing.T) {
	dir, db := newKept(t)
	if db == nil {
		return
	}
	crashed := t.TempDir()
	all := &store.Counting{SQL: `SELECT NULL AS value, count(*) AS rows FROM counted`, Rows: []store.KeyedTable{{Table: "counted", Key: "id"}}}
	change(t, db, insertMany, "anna")
	if n, err := db.CountRows(t.Context(), "all", all); err != nil || n != 100_000 {
		t.Fatalf("%d rows, %v", n, err)
	}
	expectRows(t, db, "anna", 100_000)
	closeKept(t, db)
	db = openKept(t, dir) // takes the name of the state out of the file
	change(t, db, `DELETE FROM counted WHERE number <= 5`)
	if err := os.CopyFS(crashed, crashFiles{os.DirFS(dir)}); err != nil {
		t.Fatal(err)
	}
	closeKept(t, db)

	synctest.Test(t, func(t *testing.T) {
		db := openKept(t, crashed)
		store.WaitRecounted(db)
		known := *all
		known.SQL = `SELECT NULL AS value, count(*) AS rows FROM counted WHERE missing = 1`
		if n, err := db.CountRows(t.Context(), "all", &known); err != nil || n != 99_995 {
			t.Errorf("%d rows, %v; want 99995, counted before they were asked for", n, err)
		}
		if n, err := db.CountRows(t.Context(), "anna", unusable()); err == nil {
			t.Errorf("%d rows were counted without the arguments of the statement", n)
		}
		expectRows(t, db, "anna", 99_995)
		closeKept(t, db)
	})
}

// crashFiles are the files of a directory without the lock of the process that has it open.
type crashFiles struct{ fs.FS }

func (f crashFiles) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(f.FS, name)
	return slices.DeleteFunc(all, func(e fs.DirEntry) bool { return !e.Type().IsRegular() || strings.HasSuffix(e.Name(), ".lock") }), err
}
