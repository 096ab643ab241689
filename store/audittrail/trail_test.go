package audittrail_test

import (
	"errors"
	"testing"

	"kontor/store"
	"kontor/store/audittrail"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

func TestVerify_AcceptsATrailOfSeveralProcesses(t *testing.T) {
	o := storetest.Options(t)
	for want := int64(3); want <= 9; want += 3 {
		db := storetest.OpenAgain(t, o)
		storetest.Audit(t, db, 3)
		if n, err := db.VerifyAudit(t.Context()); n != want || err != nil {
			t.Errorf("%d entries, err %v; want %d", n, err, want)
		}
		db.Close()
	}
}

func TestAudit_IsAppendOnly(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	storetest.Audit(t, db, 1)
	for _, sql := range []string{`UPDATE audit_entries SET actor = 'x'`, `DELETE FROM audit_entries`} {
		err := db.InTx(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec(ctx, sql)
			return err
		})
		if !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: got %v, want an error", sql, err)
		}
	}
}

func TestVerify_NamesTheFirstWrongEntry(t *testing.T) {
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
			o := storetest.Options(t)
			db := storetest.OpenAgain(t, o)
			storetest.Audit(t, db, 10)
			db.Close()
			run(t, o, c.tamper...)
			_, err := inspect.Check(t.Context(), storetest.Source(o), nil)
			var broken *audittrail.Break
			if !errors.As(err, &broken) || broken.Seq != c.wantSeq {
				t.Errorf("got %v, want entry %d", err, c.wantSeq)
			}
		})
	}
}

func TestAudit_EntryWithoutJSONFailsTheTransaction(t *testing.T) {
	db := storetest.Open(t)
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		tx.Audit(store.AuditEntry{Action: "a", After: func() {}})
		return nil
	})
	if err == nil {
		t.Error("a change without its audit entry was committed")
	}
}
