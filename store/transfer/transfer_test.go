package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"kontor/store"
	"kontor/store/postgres"
	"kontor/store/postgres/postgrestest"
	"kontor/store/storetest"
	"kontor/store/testenv"
	"kontor/store/transfer"
)

func TestRun_CopiesEveryRowBothWays(t *testing.T) {
	dir, key := newSource(t, manyRoles)
	url := newURL(t)
	there := copied(t, toDatabase(dir, url))
	if n := count(t, there, "roles"); n != manyRoles || there.Resumed || there.Check.AuditEntries != 3 || !there.Check.KeyChecked {
		t.Errorf("%d roles, resumed %t, check %+v", n, there.Resumed, there.Check)
	}
	back := filepath.Join(t.TempDir(), "back")
	home := copied(t, toDirectory(url, back, key))
	if !reflect.DeepEqual(there.Tables, home.Tables) {
		t.Errorf("there %v\nback %v", there.Tables, home.Tables)
	}
	for name, o := range map[string]store.Options{"database": {URL: url, SecretKey: key}, "directory": {Dir: back, SecretKey: key}} {
		db := storetest.OpenAgain(t, o)
		storetest.Audit(t, db, 2) // the trail continues
		var text string
		if err := db.QueryRow(t.Context(), `SELECT body FROM idempotency_keys`).Scan(&text); err != nil || text != awkward[len(awkward)-1] {
			t.Errorf("%s: %d bytes, %v", name, len(text), err)
		}
		var content []byte
		if err := db.QueryRow(t.Context(), `SELECT content FROM avatars WHERE pixels = 32`).Scan(&content); err != nil || string(content) != "\x00\x01\xff\\\n" {
			t.Errorf("%s: %q, %v", name, content, err)
		}
		if err := db.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	storetest.OpenAgain(t, store.Options{Dir: back, SecretKey: key}) // what was written after the copy is not missing
}

func TestRun_ContinuesAfterAnInterruption(t *testing.T) {
	dir, key := newSource(t, manyRoles)
	source := newURL(t)
	whole := copied(t, toDatabase(dir, source))
	for name, point := range map[string]func(transfer.Progress) bool{
		"before the first row":  func(p transfer.Progress) bool { return true },
		"in the largest table":  func(p transfer.Progress) bool { return p.Table == "roles" && p.Rows > 0 },
		"in the last table":     func(p transfer.Progress) bool { return p.Table == "storage_usage" },
		"while both compared":   func(p transfer.Progress) bool { return p.Step == transfer.Comparing && p.Table == "roles" },
		"before it was checked": func(p transfer.Progress) bool { return p.Step == transfer.Checking },
	} {
		t.Run(name, func(t *testing.T) {
			url, other := newURL(t), filepath.Join(t.TempDir(), "other")
			for _, c := range []struct {
				o    transfer.Options
				open store.Options
				want error
			}{
				{toDatabase(dir, url), store.Options{URL: url, SecretKey: key}, postgres.ErrCopying},
				{toDirectory(source, other, key), store.Options{Dir: other, SecretKey: key}, nil},
			} {
				if err, reached := cutAt(t, c.o, point); err == nil || !reached {
					t.Fatalf("%s: reached %t, error %v", c.o.To.Name, reached, err)
				}
				db, err := store.Open(t.Context(), c.open)
				if err == nil {
					db.Close()
				}
				if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), "kontor copy") {
					t.Errorf("%s: an incomplete copy was opened: %v", c.o.To.Name, err)
				}
				report := copied(t, c.o)
				if !reflect.DeepEqual(report.Tables, whole.Tables) {
					t.Errorf("%s: %v", c.o.To.Name, report.Tables)
				}
				storetest.OpenAgain(t, c.open).Close()
			}
		})
	}
}

func TestRun_FindsARowThatDiffers(t *testing.T) {
	dir, _ := newSource(t, 100)
	for name, change := range map[string]string{
		"changed": `UPDATE roles SET description = description || 'x' WHERE name = 'role 00042'`,
		"missing": `DELETE FROM roles WHERE name = 'role 00042'`,
		"added":   `INSERT INTO roles SELECT '0', 'x', 'x', 'x', FALSE, 0, '', 0, '', 1`,
	} {
		t.Run(name, func(t *testing.T) {
			url := newURL(t)
			o := toDatabase(dir, url)
			if err, reached := cutAt(t, o, func(p transfer.Progress) bool { return p.Step == transfer.Comparing }); err == nil || !reached {
				t.Fatal(reached, err)
			}
			postgrestest.Run(t, url, change)
			_, err := transfer.Run(t.Context(), o)
			if !errors.Is(err, transfer.ErrDiffers) || !strings.Contains(err.Error(), "roles") {
				t.Errorf("got %v, want ErrDiffers about roles", err)
			}
			if _, err := store.Open(t.Context(), store.Options{URL: url, SecretKey: strings.Repeat("ab", 32)}); !errors.Is(err, postgres.ErrCopying) {
				t.Errorf("the database can be opened: %v", err)
			}
		})
	}
}

func TestRun_RejectsAServedSide(t *testing.T) {
	dir, key := newSource(t, 1)
	url := newURL(t)
	db := storetest.OpenDir(t, dir)
	if _, err := transfer.Run(t.Context(), toDatabase(dir, url)); !errors.Is(err, transfer.ErrInUse) {
		t.Errorf("served directory: got %v, want ErrInUse", err)
	}
	db.Close()
	copied(t, toDatabase(dir, url))
	node := storetest.OpenAgain(t, store.Options{URL: url, SecretKey: key, Node: "first"})
	other := filepath.Join(t.TempDir(), "other")
	transfer.SetSessionWait(t, 0)
	if _, err := transfer.Run(t.Context(), toDirectory(url, other, key)); !errors.Is(err, transfer.ErrInUse) || !strings.Contains(err.Error(), "first") {
		t.Errorf("served database: got %v, want ErrInUse with the name of the node", err)
	}
	transfer.SetSessionWait(t, testenv.Limit())
	node.Close()
	o := toDirectory(url, other, key)
	o.Progress = func(p transfer.Progress) {
		if p.Step == transfer.Comparing && node != nil {
			node = nil
			late := storetest.OpenAgain(t, store.Options{URL: url, SecretKey: key})
			storetest.Audit(t, late, 1)
			late.Close()
		}
	}
	if _, err := transfer.Run(t.Context(), o); !errors.Is(err, transfer.ErrChanged) {
		t.Errorf("changed meanwhile: got %v, want ErrChanged", err)
	}
	locked := storetest.OpenDir(t, filepath.Join(t.TempDir(), "locked"))
	if _, err := transfer.Run(t.Context(), toDirectory(url, locked.Dir(), key)); !errors.Is(err, transfer.ErrNotEmpty) {
		t.Errorf("served target: got %v, want ErrNotEmpty", err)
	}
}

// PostgreSQL ends the session of an interrupted copy some time after the copy.
func TestRun_WaitsForTheSessionOfAnInterruptedCopy(t *testing.T) {
	dir, _ := newSource(t, 1)
	url := newURL(t)
	former, err := pgconn.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer former.Close(context.WithoutCancel(t.Context()))
	if _, err := former.Exec(t.Context(), `SELECT pg_advisory_lock(hashtext('kontor copy'))`).ReadAll(); err != nil {
		t.Fatal(err)
	}
	transfer.SetSessionWait(t, 0)
	if _, err := transfer.Run(t.Context(), toDatabase(dir, url)); !errors.Is(err, transfer.ErrInUse) {
		t.Errorf("beside another copy: got %v, want ErrInUse", err)
	}
	transfer.SetSessionWait(t, testenv.Limit())
	ended := make(chan error, 1)
	go func() {
		_, err := transfer.Run(t.Context(), toDatabase(dir, url))
		ended <- err
	}()
	testenv.Wait(t, "the copy to ask for the lock", func() bool {
		results, err := former.Exec(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'kontor copy' AND query LIKE '%pg_sleep%'`).ReadAll()
		return err == nil && string(results[0].Rows[0][0]) == "1"
	})
	if err := former.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestRun_RejectsOtherData(t *testing.T) {
	dir, key := newSource(t, 3)
	other, _ := newSource(t, 3)
	url := newURL(t)
	if err, _ := cutAt(t, toDatabase(dir, url), func(p transfer.Progress) bool { return p.Table == "roles" }); err == nil {
		t.Fatal("not interrupted")
	}
	if _, err := transfer.Run(t.Context(), toDatabase(other, url)); !errors.Is(err, transfer.ErrOtherSource) {
		t.Errorf("interrupted copy of other data: got %v, want ErrOtherSource", err)
	}
	copied(t, toDatabase(dir, url))
	if _, err := transfer.Run(t.Context(), toDatabase(other, url)); !errors.Is(err, transfer.ErrNotEmpty) {
		t.Errorf("database in use: got %v, want ErrNotEmpty", err)
	}
	foreign := newURL(t)
	postgrestest.Run(t, foreign, `CREATE TABLE accounts (id INT)`)
	if _, err := transfer.Run(t.Context(), toDatabase(other, foreign)); !errors.Is(err, transfer.ErrNotEmpty) || !strings.Contains(err.Error(), "accounts") {
		t.Errorf("database of another program: got %v, want ErrNotEmpty", err)
	}
	wrong := toDatabase(dir, newURL(t))
	wrong.SecretKey = strings.Repeat("ab", 32)
	if _, err := transfer.Run(t.Context(), wrong); !errors.Is(err, store.ErrWrongKey) {
		t.Errorf("wrong key: got %v, want ErrWrongKey", err)
	}
	if _, err := transfer.Run(t.Context(), toDirectory(url, filepath.Join(t.TempDir(), "x"), strings.Repeat("ab", 32))); !errors.Is(err, store.ErrWrongKey) {
		t.Errorf("wrong key of a database: got %v, want ErrWrongKey", err)
	}
	if _, err := transfer.Run(t.Context(), toDirectory(newURL(t), filepath.Join(t.TempDir(), "x"), key)); err == nil || !strings.Contains(err.Error(), "no data") {
		t.Errorf("empty database: got %v", err)
	}
	old := newURL(t)
	copied(t, toDatabase(dir, old))
	postgrestest.Run(t, old, `UPDATE kontor_schema SET version = version - 1`)
	if _, err := transfer.Run(t.Context(), toDirectory(old, filepath.Join(t.TempDir(), "x"), key)); !errors.Is(err, transfer.ErrOtherSchema) {
		t.Errorf("older schema: got %v, want ErrOtherSchema", err)
	}
}

func TestRun_RejectsWhatPostgreSQLCannotStore(t *testing.T) {
	for name, text := range map[string]string{"a NUL byte": "a\x00b", "another encoding": "a\xffb"} {
		dir, _ := newSource(t, 1)
		storetest.Tamper(t, filepath.Join(dir, "kontor.db"), fmt.Sprintf(`UPDATE roles SET description = CAST(x'%x' AS TEXT)`, text))
		_, err := transfer.Run(t.Context(), toDatabase(dir, newURL(t)))
		if !errors.Is(err, transfer.ErrNotStorable) || !strings.Contains(err.Error(), "description") {
			t.Errorf("%s: got %v, want ErrNotStorable with the column", name, err)
		}
	}
}

func TestRun_RejectsARestoreWhoseErasuresAreOpen(t *testing.T) {
	dir, _ := newSource(t, 1)
	db := storetest.OpenDir(t, dir)
	var user string
	if err := db.QueryRow(t.Context(), `SELECT id FROM users`).Scan(&user); err != nil {
		t.Fatal(err)
	}
	if err := db.RecordErasures(store.Erasure{ID: store.NewID(), Kind: "user", Subject: user}); err != nil {
		t.Fatal(err)
	}
	db.Close()
	if _, err := transfer.Run(t.Context(), toDatabase(dir, newURL(t))); !errors.Is(err, transfer.ErrErasures) {
		t.Errorf("got %v, want ErrErasures", err)
	}
}
