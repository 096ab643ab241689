package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"kontor/store"
	"kontor/store/audittrail"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

// A rotation that fails while it seals is completed by the next one, which does not begin another.
func TestRotateMasterKey_Resumes(t *testing.T) {
	if storetest.SQLiteOnly(t, keyInFile) {
		return
	}
	dir, db := newNotes(t, 120)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := db.RotateMasterKey(ctx, store.Rotation{Report: func(store.Resealed) { cancel() }}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if state, err := db.KeyState(t.Context()); err != nil || !state.Resealing || len(state.Remaining) != 1 || state.Remaining[0].Values == 0 {
		t.Errorf("got %+v, %v", state, err)
	}
	check(t, dir)
	db.Close()
	db = openNotes(t, dir)
	if got := readNotes(t, db); got != 120 {
		t.Errorf("between the parts: %d values", got)
	}
	if resumed, err := db.RotateMasterKey(t.Context(), store.Rotation{}); err != nil || !resumed {
		t.Errorf("resumed %v, %v", resumed, err)
	}
	if state, err := db.KeyState(t.Context()); err != nil || state.Resealing || len(state.Remaining) != 0 || len(state.Generations) != 2 {
		t.Errorf("got %+v, %v", state, err)
	}
}

// A directory that cannot be written is refused before anything changes.
func TestRotateMasterKey_CannotWriteTheKey(t *testing.T) {
	if storetest.SQLiteOnly(t, keyInFile) {
		return
	}
	dir, db := newNotes(t, 3)
	former := readKey(t, dir)
	if err := os.MkdirAll(filepath.Join(dir, "secret.key.next", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := db.RotateMasterKey(t.Context(), store.Rotation{}); err == nil {
		t.Error("no error")
	}
	if len(generations(t, db)) != 1 || readKey(t, dir) != former || readNotes(t, db) != 3 {
		t.Error("something changed")
	}
}

// The next start removes the remains of a rotation that the database never had.
func TestOpen_RemovesTheKeyOfAnAbandonedRotation(t *testing.T) {
	if storetest.SQLiteOnly(t, keyInFile) {
		return
	}
	for name, content := range map[string]string{"whole": strings.Repeat("0a", 32) + "\n", "empty": "", "torn": "0a0a"} {
		dir := storetest.Dir(t)
		next := filepath.Join(dir, "secret.key.next")
		if err := os.WriteFile(next, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		check(t, dir)
		db := storetest.OpenDir(t, dir)
		if _, err := os.Stat(next); err == nil {
			t.Errorf("%s: the key is still there", name)
		}
		rotate(t, db)
		db.Close()
		check(t, dir)
	}
}

// Concurrent writes seal with the former key and with the new one; none is lost, and none stays under the former key.
func TestRotateMasterKey_UnderWrites(t *testing.T) {
	if storetest.SQLiteOnly(t, keyInFile) {
		return
	}
	dir, db := newNotes(t, 60)
	var wait sync.WaitGroup
	for w := 1; w <= 4; w++ {
		wait.Go(func() { writeNotes(t, db, 100*w, 100*w+60) })
	}
	for range 3 {
		rotate(t, db)
	}
	wait.Wait()
	if err := db.ResumeRotation(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := readNotes(t, db); got != 300 {
		t.Errorf("%d values", got)
	}
	check(t, dir)
	db.Close()
	check(t, dir)
}

// A check, an export and the list of keys beside a rotation find nothing wrong.
func TestRotateMasterKey_BesideChecks(t *testing.T) {
	if storetest.SQLiteOnly(t, keyInFile) {
		return
	}
	dir, db := newNotes(t, 5)
	calls := 0
	_, err := inspect.Check(t.Context(), inspect.Source{Dir: dir}, func(context.Context, *audittrail.Evidence) error {
		if calls++; calls < 3 {
			rotate(t, db)
			writeNotes(t, db, 10*calls, 10*calls+5)
		}
		return nil
	})
	if err != nil || calls != 3 {
		t.Errorf("after %d calls: %v", calls, err)
	}
}

func TestRotateMasterKey_OneAtATime(t *testing.T) {
	if storetest.SQLiteOnly(t, keyInFile) {
		return
	}
	db := storetest.Open(t)
	notes(db)
	writeNotes(t, db, 0, 1)
	var nested error
	_, err := db.RotateMasterKey(t.Context(), store.Rotation{Report: func(store.Resealed) {
		_, nested = db.RotateMasterKey(t.Context(), store.Rotation{})
	}})
	if err != nil || !errors.Is(nested, store.ErrRotating) {
		t.Errorf("got %v and %v", err, nested)
	}
	if len(generations(t, db)) != 2 {
		t.Error("there was more than one rotation")
	}
}

// keyInFile is why most tests of rotations need SQLite.
const keyInFile = "the master key is in a file of the data directory"

// notes registers the column value of user_roles as sealed: any table with two texts will do.
func notes(db *store.DB) {
	db.RegisterSealed(store.SealedColumn{
		Table: "user_roles", Column: "role_id",
		Select: `SELECT name, name, name_key FROM roles WHERE name_key NOT LIKE $1 AND name > $2 ORDER BY name LIMIT $3`,
		Update: `UPDATE roles SET name_key = $3 WHERE name = $1 AND name_key = $2`,
	})
}

// openNotes opens a directory for sealed notes.
func openNotes(t *testing.T, dir string) *store.DB {
	t.Helper()
	db := storetest.OpenDir(t, dir)
	notes(db)
	return db
}

// newNotes opens a new directory and writes a number of sealed notes.
func newNotes(t *testing.T, n int) (dir string, db *store.DB) {
	t.Helper()
	dir = storetest.Dir(t)
	db = openNotes(t, dir)
	writeNotes(t, db, 0, n)
	return dir, db
}

// writeNotes stores sealed values under the names note-from to note-to.
func writeNotes(t *testing.T, db *store.DB, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		name := fmt.Sprintf("note-%03d", i)
		sealed, err := db.Seal("user_roles", "role_id", name, []byte("text of "+name))
		if err != nil {
			t.Fatal(err)
		}
		err = db.InTx(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec(t.Context(), `INSERT INTO roles (id, name, name_key, created_at, created_by, modified_at, modified_by)
				VALUES ($1, $2, $3, 0, '', 0, '')`, store.NewID(), name, sealed)
			tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "note", RecType: "notes", RecID: name})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// readNotes opens all values and returns how many there are.
func readNotes(t *testing.T, db *store.DB) (n int) {
	t.Helper()
	rows, err := db.Query(t.Context(), `SELECT name, name_key FROM roles ORDER BY name`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, sealed string
		if err := rows.Scan(&name, &sealed); err != nil {
			t.Fatal(err)
		}
		plain, err := db.Unseal("user_roles", "role_id", name, sealed)
		if err != nil || string(plain) != "text of "+name {
			t.Fatalf("%s: got %q, %v", name, plain, err)
		}
		n++
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}

// openAt opens a directory with a clock of the test.
func openAt(t *testing.T, dir string, clock *storetest.Clock) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Dir: dir, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	notes(db)
	return db
}

func rotate(t *testing.T, db *store.DB) {
	t.Helper()
	if resumed, err := db.RotateMasterKey(t.Context(), store.Rotation{}); err != nil || resumed {
		t.Fatalf("resumed %v, %v", resumed, err)
	}
}

// rotated replaces the master key, wherever the database has it from, and returns the options to open it with.
func rotated(t *testing.T, db *store.DB, o store.Options) store.Options {
	t.Helper()
	if o.SecretKey == "" {
		rotate(t, db)
		return o
	}
	next := o
	next.SecretKey = strings.Repeat("a0", 32)
	if _, err := db.RotateMasterKey(t.Context(), store.Rotation{SecretKey: next.SecretKey, PreviousKey: o.SecretKey}); err != nil {
		t.Fatal(err)
	}
	return next
}

func readKey(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func readFile(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func check(t *testing.T, dir string) {
	t.Helper()
	_, err := os.Stat(filepath.Join(dir, "kontor.mark"))
	marked := err == nil
	if report, err := inspect.Check(t.Context(), inspect.Source{Dir: dir}, nil); err != nil || !report.KeyChecked || report.MarkChecked != marked {
		t.Errorf("check: %+v, %v", report, err)
	}
}

func openErr(o store.Options) error {
	db, err := store.Open(context.Background(), o)
	if err == nil {
		db.Close()
	}
	return err
}

func second[T any](_ T, err error) error { return err }

func generations(t *testing.T, db *store.DB) []store.KeyGeneration {
	t.Helper()
	state, err := db.KeyState(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return state.Generations
}
