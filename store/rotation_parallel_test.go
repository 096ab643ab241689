package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"kontor/store"
	"kontor/store/audittrail"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

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
