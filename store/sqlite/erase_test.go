package sqlite_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kontor/store"
)

const planted = "planted-code"

// filesWith returns the names of the files in a directory that contain a text.
func filesWith(t *testing.T, dir, text string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(data, []byte(text)); n > 0 {
			names = append(names, fmt.Sprintf("%s (%d times)", e.Name(), n))
		}
	}
	return names
}

// plant inserts deliveries with codes, with texts that fit a page and others that do not. It returns their ids.
func plant(t *testing.T, db *store.DB, n int) []string {
	t.Helper()
	var ids []string
	for range n {
		id := store.NewID()
		ids = append(ids, id)
		write(t, db, `INSERT INTO deliveries (id, user_id, channel, recipient, recipient_key, text, html, secret, status, created_at)
			VALUES ($1, $2, 'sms', 'r', 'r', $3, $4, TRUE, 'sending', 1)`, id, store.NewID(),
			planted+strings.Repeat("x", rand.IntN(300)), strings.Repeat(planted, 1+rand.IntN(40)*rand.IntN(40)))
	}
	return ids
}

func write(t *testing.T, db *store.DB, sql string, args ...any) {
	t.Helper()
	if err := db.InTx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), sql, args...)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// blank blanks or deletes deliveries in the order in which they were inserted. In another order, SQLite moves rows between
// pages, and may leave a copy in an unused part of a page.
func blank(t *testing.T, db *store.DB, ids []string) {
	t.Helper()
	for i, id := range ids {
		if i%5 == 0 {
			write(t, db, `DELETE FROM deliveries WHERE id = $1`, id)
		} else {
			write(t, db, `UPDATE deliveries SET text = '', html = '' WHERE id = $1`, id)
		}
	}
}

func TestDeletedContent_DoesNotStayInTheDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		for range 3 {
			ids := plant(t, db, 150)
			if filesWith(t, db.Dir(), planted) == nil {
				t.Fatal("the codes are not in the directory")
			}
			time.Sleep(20 * time.Second) // the codes are in the database file
			blank(t, db, ids)
			time.Sleep(20 * time.Second)
			if left := filesWith(t, db.Dir(), planted); left != nil {
				t.Errorf("blanked codes remain in %v", left)
			}
		}
		if err := db.Ready(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Content that is written and deleted within one log is removed, too, and a reader only delays that.
func TestDeletedContent_LeavesTheLogOnceReadersHaveFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		plant(t, db, 1)
		err := db.View(t.Context(), func(v *store.View) error {
			var n int
			if err := v.QueryRow(t.Context(), "SELECT COUNT(*) FROM deliveries").Scan(&n); err != nil {
				return err
			}
			blank(t, db, plant(t, db, 20))
			write(t, db, "DELETE FROM deliveries")
			time.Sleep(20 * time.Second)
			if filesWith(t, db.Dir(), planted) == nil {
				t.Error("the log was truncated under a reader")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		if left := filesWith(t, db.Dir(), planted); left != nil {
			t.Errorf("deleted codes remain in %v", left)
		}
		if info, err := os.Stat(filepath.Join(db.Dir(), "kontor.db-wal")); err != nil || info.Size() != 0 {
			t.Errorf("the log has %d bytes, %v", info.Size(), err)
		}
	})
}

// The log is truncated seldom, because a log that has to grow costs more than one that is overwritten.
func TestErase_IsRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		truncated := 0
		for range 100 {
			plant(t, db, 1)
			time.Sleep(300 * time.Millisecond)
			if info, err := os.Stat(filepath.Join(db.Dir(), "kontor.db-wal")); err == nil && info.Size() == 0 {
				truncated++
			}
		}
		if truncated < 4 || truncated > 7 {
			t.Errorf("the log was truncated %d times in 30 seconds", truncated)
		}
	})
}
