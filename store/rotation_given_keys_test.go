package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
)

// The keys from the environment are replaced at a start that is given both, or by a request that has both.
func TestRotateMasterKey_GivenKeys(t *testing.T) {
	ctx := t.Context()
	keys := []string{strings.Repeat("0a", 32), strings.Repeat("0b", 32), strings.Repeat("0c", 32), strings.Repeat("0d", 32)}
	o := storetest.Unused(t)
	open := func(key, previous string) *store.DB {
		t.Helper()
		o.SecretKey, o.PreviousKey = key, previous
		db, err := store.Open(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		notes(db)
		return db
	}
	db := open(keys[0], "")
	writeNotes(t, db, 0, 60)
	for name, r := range map[string]store.Rotation{
		"no keys": {}, "no previous key": {SecretKey: keys[1]}, "wrong previous key": {SecretKey: keys[1], PreviousKey: keys[2]},
		"malformed": {SecretKey: "xyz", PreviousKey: keys[0]}, "the present key": {SecretKey: keys[0], PreviousKey: keys[0]},
	} {
		if _, err := db.RotateMasterKey(ctx, r); err == nil || len(generations(t, db)) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := db.RotateMasterKey(ctx, store.Rotation{SecretKey: keys[1], PreviousKey: keys[0]}); err != nil {
		t.Fatal(err)
	}
	db.Close()
	for name, wrong := range map[string]store.Options{
		"former key": {SecretKey: keys[0]}, "wrong previous key": {SecretKey: keys[2], PreviousKey: keys[3]},
		"former as previous": {SecretKey: keys[2], PreviousKey: keys[0]},
	} {
		wrong.Dir, wrong.URL = o.Dir, o.URL
		if err := openErr(wrong); !errors.Is(err, store.ErrWrongKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	db = open(keys[2], keys[1]) // replaces the key
	if state, err := db.KeyState(ctx); err != nil || !state.Resealing || len(state.Generations) != 3 || state.InFile {
		t.Errorf("got %+v, %v", state, err)
	}
	if err := db.ResumeRotation(ctx); err != nil {
		t.Fatal(err)
	}
	db.Close()
	db = open(keys[2], keys[1]) // the previous key has no effect any more
	if state, err := db.KeyState(ctx); err != nil || state.Resealing || len(state.Generations) != 3 {
		t.Errorf("got %+v, %v", state, err)
	}
	if got := readNotes(t, db); got != 60 {
		t.Errorf("%d values", got)
	}
	db.Close()
	if _, err := os.Stat(filepath.Join(o.Dir, "secret.key")); err == nil {
		t.Error("a key file was written")
	}
}
