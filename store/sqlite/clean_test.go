package sqlite_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"kontor/store"
	"kontor/store/storetest"
)

// churn changes and deletes rows in any order, so that SQLite splits pages, moves rows between them and joins pages.
func churn(t *testing.T, db *store.DB, ids []string) {
	t.Helper()
	rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for i, id := range ids {
		switch i % 3 {
		case 0:
			write(t, db, `UPDATE deliveries SET text = $2 WHERE id = $1`, id, strings.Repeat(planted, 1+rand.IntN(60)))
		case 1:
			write(t, db, `UPDATE deliveries SET recipient_key = $2 WHERE id = $1`, id, fmt.Sprint(planted, rand.IntN(1000)))
		default:
			plant(t, db, 1)
		}
	}
}

// After Clean no file holds a value that was overwritten or deleted, however often its row was moved.
func TestClean_LeavesNoCopiesOfMovedRows(t *testing.T) {
	db := storetest.Open(t)
	for round := range 3 {
		ids := plant(t, db, 200)
		churn(t, db, ids)
		if err := db.Clean(t.Context()); err != nil {
			t.Fatal(err)
		}
		if filesWith(t, db.Dir(), planted) == nil {
			t.Fatal("the codes are not in the directory")
		}
		rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		for _, id := range ids[:100] {
			write(t, db, `DELETE FROM deliveries WHERE id = $1`, id)
		}
		write(t, db, `UPDATE deliveries SET recipient = '', recipient_key = '', text = '', html = ''`)
		if err := db.Clean(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := filesWith(t, db.Dir(), planted); left != nil {
			t.Errorf("round %d: codes remain in %v", round, left)
		}
	}
	if err := db.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

// Clean waits for a reader of an earlier state, and does not claim more than it did.
func TestClean_WaitsForReaders(t *testing.T) {
	db := storetest.Open(t)
	err := db.View(t.Context(), func(v *store.View) error {
		var n int
		if err := v.QueryRow(t.Context(), "SELECT COUNT(*) FROM deliveries").Scan(&n); err != nil {
			return err
		}
		plant(t, db, 1)
		write(t, db, "DELETE FROM deliveries")
		short, cancel := context.WithCancel(t.Context())
		cancel()
		if err := db.Clean(short); !errors.Is(err, context.Canceled) {
			t.Errorf("with a context that has ended: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Clean(t.Context()); err != nil {
		t.Error(err)
	}
	if left := filesWith(t, db.Dir(), planted); left != nil {
		t.Errorf("deleted codes remain in %v", left)
	}
}

// Pages from before the file layer cleared unused bytes are cleaned once.
func TestClean_RewritesOldPages(t *testing.T) {
	dir := storetest.Dir(t)
	db := storetest.OpenDir(t, dir)
	ids := plant(t, db, 50)
	write(t, db, `UPDATE deliveries SET text = '', html = ''`)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if n := soil(t, filepath.Join(dir, "kontor.db")); n < 5 {
		t.Fatalf("%d pages were soiled", n)
	}
	db = storetest.OpenDir(t, dir)
	if filesWith(t, dir, planted) == nil {
		t.Fatal("nothing was planted")
	}
	if err := db.Clean(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := filesWith(t, dir, planted); left != nil {
		t.Errorf("old bytes remain in %v", left)
	}
	var n int
	if err := db.QueryRow(t.Context(), `SELECT COUNT(*) FROM deliveries`).Scan(&n); err != nil || n != len(ids) {
		t.Errorf("%d rows, %v", n, err)
	}
	if err := db.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

// soil writes values into the unused bytes of all leaf pages with enough space, with correct checksums.
func soil(t *testing.T, path string) (soiled int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const size = 4096
	for number := 2; number <= len(data)/size; number++ {
		page := data[(number-1)*size : number*size]
		if page[0] != 13 && page[0] != 10 {
			continue
		}
		from, to := 8+2*int(binary.BigEndian.Uint16(page[3:])), int(binary.BigEndian.Uint16(page[5:]))
		if to-from < len(planted) {
			continue
		}
		copy(page[to-len(planted):], planted)
		binary.LittleEndian.PutUint64(page[size-8:], xxhash.Sum64(page[:size-8])^uint64(number)*0x9e3779b97f4a7c15)
		soiled++
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return soiled
}
