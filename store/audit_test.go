package store_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"kontor/store"
	"kontor/store/internal/sqlite"
	"kontor/store/storetest"
)

// audited stores n audit entries, each in a transaction of its own.
func audited(t testing.TB, db *store.DB, n int) {
	t.Helper()
	ctx := t.Context()
	for i := range n {
		err := db.InTx(ctx, func(tx *store.Tx) error {
			tx.Audit(store.AuditEntry{
				Actor: store.NilID, Action: fmt.Sprintf("marked.%04d", i+1), RecType: "roles", RecID: store.NewID(),
				Before: map[string]int{"n": i}, After: map[string]int{"n": i + 1},
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func openDir(t testing.TB, dir string) *store.DB {
	t.Helper()
	db, err := store.Open(context.Background(), store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// run changes a closed database behind the store's back.
func run(t testing.TB, dir string, statements ...string) {
	t.Helper()
	conn, err := sqlite.Open(filepath.Join(dir, "kontor.db"), sqlite.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, s := range statements {
		if err := conn.Run(s); err != nil {
			t.Fatal(err)
		}
	}
}

func TestVerifyAudit_HoldsAcrossRestarts(t *testing.T) {
	dir := storetest.Dir(t)
	for want := int64(3); want <= 9; want += 3 {
		db := openDir(t, dir)
		audited(t, db, 3)
		if n, err := db.VerifyAudit(t.Context()); n != want || err != nil {
			t.Errorf("%d entries, err %v; want %d", n, err, want)
		}
		db.Close()
	}
}

func TestAudit_IsAppendOnly(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	audited(t, db, 1)
	for _, sql := range []string{`UPDATE audit_entries SET actor = 'x'`, `DELETE FROM audit_entries`} {
		err := db.InTx(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec(ctx, sql)
			return err
		})
		if !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: got %v, want a refusal", sql, err)
		}
	}
}

func TestVerifyAudit_NamesTheFirstBadEntry(t *testing.T) {
	const free = `DROP TRIGGER audit_entries_no_update`
	const freeDelete = `DROP TRIGGER audit_entries_no_delete`
	for _, c := range []struct {
		name    string
		tamper  []string
		wantSeq int64
	}{
		{"changed", []string{free, `UPDATE audit_entries SET actor = 'somebody' WHERE seq = 4`}, 4},
		{"hash changed", []string{free, `UPDATE audit_entries SET hash = prev_hash WHERE seq = 4`}, 4},
		{"order changed", []string{free, `UPDATE audit_entries SET seq = 100 WHERE seq = 4`,
			`UPDATE audit_entries SET seq = 4 WHERE seq = 5`, `UPDATE audit_entries SET seq = 5 WHERE seq = 100`}, 4},
		{"removed", []string{freeDelete, `DELETE FROM audit_entries WHERE seq = 6`}, 6},
		{"newest removed", []string{freeDelete, `DELETE FROM audit_entries WHERE seq > 8`}, 9},
		{"all removed", []string{freeDelete, `DELETE FROM audit_entries`}, 1},
		{"signature removed", []string{`DELETE FROM meta WHERE name = 'audit_head'`}, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := storetest.Dir(t)
			db := openDir(t, dir)
			audited(t, db, 10)
			db.Close()
			run(t, dir, c.tamper...)
			_, err := store.Check(t.Context(), store.Options{Dir: dir})
			var broken *store.AuditBreak
			if !errors.As(err, &broken) || broken.Seq != c.wantSeq {
				t.Errorf("got %v, want entry %d", err, c.wantSeq)
			}
		})
	}
}

func TestAudit_EntryThatHasNoJSONFailsTheClosure(t *testing.T) {
	db := storetest.Open(t)
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		tx.Audit(store.AuditEntry{Action: "a", After: func() {}})
		return nil
	})
	if err == nil {
		t.Error("a change without its audit entry was committed")
	}
}
