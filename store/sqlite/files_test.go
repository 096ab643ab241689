package sqlite_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kontor/store"
	"kontor/store/backup"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

// put writes files into a data directory.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func move(t *testing.T, dir, from, to string) {
	t.Helper()
	if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
		t.Fatal(err)
	}
}

func TestOpen_DoesNotReplaceALostDatabase(t *testing.T) {
	dir := storetest.Dir(t)
	move(t, dir, "kontor.db", "elsewhere")
	expectRejected(t, store.Options{Dir: dir}, nil, "kontor.db is missing but its key secret.key is there", "put the database back")
	expectRejected(t, store.Options{Dir: dir, SecretKey: strings.Repeat("0f", 32)}, nil, "put the database back")
	if _, err := os.Stat(filepath.Join(dir, "kontor.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a database was begun: %v", err)
	}
	move(t, dir, "elsewhere", "kontor.db")
	openDir(t, dir)
}

func TestOpen_RepeatsAnInterruptedFirstStart(t *testing.T) {
	key := strings.Repeat("0f", 32) + "\n"
	for name, left := range map[string]map[string]string{
		"announced":       {"kontor.db.new": ""},
		"half a key":      {"kontor.db.new": "", "secret.key.new": key[:10]},
		"a key":           {"kontor.db.new": "", "secret.key": key},
		"half a database": {"kontor.db.new": "SQLite format 3\x00 and no more", "kontor.db.new-wal": "xyz", "kontor.db.new-journal": "xyz", "secret.key": key},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			put(t, dir, left)
			storetest.Audit(t, openDir(t, dir), 1)
			if now, err := os.ReadFile(filepath.Join(dir, "secret.key")); err != nil || left["secret.key"] != "" && string(now) != key {
				t.Errorf("the key is %q, %v", now, err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*.new*")); left != nil {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestRestore_RepeatsAnInterruptedRestore(t *testing.T) {
	source, file := storetest.Dir(t), filepath.Join(t.TempDir(), "kontor.backup")
	if _, err := backup.Create(t.Context(), inspect.Source{Dir: source}, file, backup.Options{WithKey: true}); err != nil {
		t.Fatal(err)
	}
	for name, left := range map[string]map[string]string{
		"announced":       {"kontor.db.restoring": ""},
		"another backup":  {"kontor.db.restoring": "", "secret.key.restoring": strings.Repeat("0f", 32)},
		"half a database": {"kontor.db.restoring": "SQLite format 3\x00 and no more", "kontor.db.restoring-wal": "xyz", "secret.key.restoring": "x", "kontor.lock": ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			put(t, dir, left)
			expectRejected(t, store.Options{Dir: dir}, nil, "was interrupted: run it again")
			if _, err := backup.Restore(t.Context(), []string{file}, inspect.Source{Dir: dir}); err != nil {
				t.Fatal(err)
			}
			openDir(t, dir)
			if left, _ := filepath.Glob(filepath.Join(dir, "*.restoring*")); left != nil {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestOpen_RenamesTheKeyOfAnInterruptedRestore(t *testing.T) {
	dir := storetest.Dir(t)
	move(t, dir, "secret.key", "secret.key.restoring")
	if report, err := inspect.Check(t.Context(), inspect.Source{Dir: dir}, nil); err != nil || !report.KeyChecked {
		t.Errorf("the check beside it: %+v, %v", report, err)
	}
	file := filepath.Join(t.TempDir(), "kontor.backup")
	if _, err := backup.Create(t.Context(), inspect.Source{Dir: dir}, file, backup.Options{WithKey: true}); err != nil {
		t.Errorf("the backup beside it: %v", err)
	}
	openDir(t, dir)
	if _, err := os.Stat(filepath.Join(dir, "secret.key")); err != nil {
		t.Error(err)
	}
}

func TestInTx_DiskFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		ctx := t.Context()
		pages := func(n int) {
			t.Helper()
			synctest.Wait()
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
	})
}

func TestReady_FollowsTheStateOfTheStorage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		ctx := t.Context()
		queryOnly := func(value string) {
			t.Helper()
			synctest.Wait()
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
	})
}

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
