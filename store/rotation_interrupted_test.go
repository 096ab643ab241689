package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/store"
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
