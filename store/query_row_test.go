package store_test

import (
	"errors"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
)

func TestQueryRow_EndsWithItsScan(t *testing.T) {
	db := storetest.Open(t)
	row := db.QueryRow(t.Context(), "SELECT 7")
	var n int
	if err := row.Scan(&n); err != nil || n != 7 {
		t.Fatalf("got %d and %v", n, err)
	}
	if err := row.Scan(&n); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a second Scan: got %v, want ErrClosed", err)
	}
	var kept *store.Row
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		kept = tx.QueryRow(t.Context(), "SELECT 7")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := kept.Scan(&n); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a row that outlives its transaction: got %v, want ErrClosed", err)
	}
	for range 100 { // more than there are readers: a row that was scanned holds none
		if err := db.QueryRow(t.Context(), "SELECT 7 WHERE 1 = 0").Scan(&n); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("no row: got %v, want ErrNotFound", err)
		}
	}
}
