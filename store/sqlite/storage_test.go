package sqlite_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
)

func TestInTx_DiskFull(t *testing.T) {
	db := open(t)
	ctx := t.Context()
	pages := func(n int) {
		t.Helper()
		if err := engineOf(db).Pragma(fmt.Sprint("max_page_count = ", n)); err != nil {
			t.Fatal(err)
		}
	}
	pages(1) // SQLite uses the present size instead
	big := strings.Repeat("x", 1<<20)
	free := hold(t, db)
	runs := 0
	first := enqueue(db, func(tx *store.Tx) error {
		runs++
		return storetest.InsertRole(ctx, tx, "first")
	})
	full := enqueue(db, func(tx *store.Tx) error { return storetest.InsertRole(ctx, tx, big) })
	last := enqueue(db, func(tx *store.Tx) error { return storetest.InsertRole(ctx, tx, "last") })
	free()
	if err := <-full; !errors.Is(err, store.ErrFull) || !store.Temporary(err) {
		t.Errorf("got %v, want ErrFull", err)
	}
	for _, r := range []chan error{first, last} {
		if err := <-r; err != nil {
			t.Errorf("a small write beside the one that did not fit: %v", err)
		}
	}
	if runs != 2 {
		t.Errorf("the job whose transaction was lost ran %d times, want 2", runs)
	}
	if n := storetest.CountRoles(t, db); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}

	if err := db.InTx(ctx, func(tx *store.Tx) error { return storetest.InsertRole(ctx, tx, big) }); !errors.Is(err, store.ErrFull) {
		t.Errorf("got %v, want ErrFull", err)
	}
	if err := db.Ready(ctx); !errors.Is(err, store.ErrFull) {
		t.Errorf("ready says %v, want ErrFull", err)
	}

	pages(1 << 30)
	if err := db.Ready(ctx); err != nil {
		t.Errorf("ready with room again: %v", err)
	}
	if err := db.InTx(ctx, func(tx *store.Tx) error { return storetest.InsertRole(ctx, tx, big) }); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

func TestReady_FollowsTheStateOfTheStorage(t *testing.T) {
	db := open(t)
	ctx := t.Context()
	queryOnly := func(value string) {
		t.Helper()
		if err := engineOf(db).Pragma("query_only = " + value); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Ready(ctx); err != nil {
		t.Errorf("at first: %v", err)
	}
	queryOnly("ON")
	err := db.InTx(ctx, func(tx *store.Tx) error { return storetest.InsertRole(ctx, tx, "a") })
	if !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("got %v, want ErrReadOnly", err)
	}
	if n := storetest.CountRoles(t, db); n != 0 {
		t.Errorf("%d rows, want none", n)
	}
	if err := db.Ready(ctx); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("ready says %v, want ErrReadOnly", err)
	}
	queryOnly("OFF")
	if err := db.Ready(ctx); err != nil {
		t.Errorf("with a storage that writes again: %v", err)
	}
}
