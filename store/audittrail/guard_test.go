package audittrail_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"kontor/store"
	"kontor/store/audittrail"
	"kontor/store/inspect"
	"kontor/store/postgres/postgrestest"
	"kontor/store/storetest"
)

const dropGuards = "DROP TRIGGER audit_entries_no_update; DROP TRIGGER audit_entries_no_delete"

// The start rejects a trail that was erased, cut or replaced, and the check names it.
func TestOpen_RejectsATrailWithoutItsHead(t *testing.T) {
	for _, c := range []struct {
		name       string
		entries    int
		statements []string
		says       string
	}{
		{"head removed", 3, []string{"DELETE FROM meta WHERE name = 'audit_head'"}, "signed head is missing"},
		{"entries and head erased", 3, []string{dropGuards, "DELETE FROM audit_entries", "DELETE FROM meta WHERE name = 'audit_head'"}, "signed head is missing"},
		{"head of an empty trail removed", 0, []string{"DELETE FROM meta WHERE name = 'audit_head'"}, "signed head is missing"},
		{"entries erased", 3, []string{dropGuards, "DELETE FROM audit_entries"}, "signed up to entry 3"},
		{"newest entry removed", 3, []string{dropGuards, "DELETE FROM audit_entries WHERE seq = 3"}, "signed up to entry 3"},
		{"oldest entry removed", 3, []string{dropGuards, "DELETE FROM audit_entries WHERE seq = 1"}, "audit entry 1: it is missing"},
		{"newest entry changed", 3, []string{dropGuards, "UPDATE audit_entries SET actor = 'x' WHERE seq = 3"}, "audit entry 3: it was changed"},
		{"forged head", 3, []string{"UPDATE meta SET value = substr(value, 1, 67) || 'ff' WHERE name = 'audit_head'"}, "not the newest one that was signed"},
		{"key check and head erased", 3, []string{"DELETE FROM meta"}, "check value of the secret key is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := storetest.Options(t)
			db := storetest.OpenAgain(t, o)
			storetest.Audit(t, db, c.entries)
			db.Close()
			run(t, o, strings.Split(strings.Join(c.statements, "; "), "; ")...)
			_, err := store.Open(context.Background(), o)
			if !errors.Is(err, store.ErrTampered) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("the start says %v, want one line with %q", err, c.says)
			}
			_, err = inspect.Check(context.Background(), storetest.Source(o), nil)
			if broken := (*audittrail.Break)(nil); !errors.As(err, &broken) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the check says %v, want %q", err, c.says)
			}
		})
	}
}

func TestOpen_SignsTheHeadOfAnEarlierVersion(t *testing.T) {
	for _, entries := range []int{0, 3} {
		o := storetest.Options(t)
		db := storetest.OpenAgain(t, o)
		storetest.Audit(t, db, entries)
		old := audittrail.OldKeyCheck(storetest.MasterKey(t, o))
		db.Close()
		statements := []string{"UPDATE meta SET value = '" + old + "' WHERE name = 'key_check'"}
		if entries == 0 {
			statements = append(statements, "DELETE FROM meta WHERE name = 'audit_head'") // it had none
		}
		run(t, o, statements...)
		if report, err := inspect.Check(context.Background(), storetest.Source(o), nil); err != nil || !report.KeyChecked {
			t.Errorf("before the start: %+v, %v", report, err)
		}
		storetest.OpenAgain(t, o).Close()
		run(t, o, "DELETE FROM meta WHERE name = 'audit_head'")
		if _, err := store.Open(context.Background(), o); !errors.Is(err, store.ErrTampered) {
			t.Errorf("%d entries: a head that was bound and removed: %v", entries, err)
		}
	}
}

// Restoring the old check value must not make a database without a head acceptable.
func TestOpen_RejectsAnEarlierVersionWithoutItsHead(t *testing.T) {
	o := storetest.Options(t)
	db := storetest.OpenAgain(t, o)
	storetest.Audit(t, db, 3)
	old := audittrail.OldKeyCheck(storetest.MasterKey(t, o))
	db.Close()
	run(t, o, "UPDATE meta SET value = '"+old+"' WHERE name = 'key_check'", "DELETE FROM meta WHERE name = 'audit_head'")
	if _, err := store.Open(context.Background(), o); !errors.Is(err, store.ErrTampered) {
		t.Errorf("got %v", err)
	}
}

// unprotect returns statements that remove the protection of the trail.
func unprotect() map[string][]string {
	if storetest.OnPostgreSQL() {
		return map[string][]string{
			"dropped":    {"DROP TRIGGER audit_entries_append_only ON audit_entries"},
			"disabled":   {"ALTER TABLE audit_entries DISABLE TRIGGER USER"},
			"not always": {"ALTER TABLE audit_entries ENABLE TRIGGER audit_entries_append_only"},
			"replaced":   {"CREATE OR REPLACE FUNCTION kontor_append_only() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"},
		}
	}
	return map[string][]string{
		"dropped":  {"DROP TRIGGER audit_entries_no_delete"},
		"replaced": {"DROP TRIGGER audit_entries_no_update", "CREATE TRIGGER audit_entries_no_update BEFORE UPDATE ON audit_entries BEGIN SELECT 1; END"},
	}
}

func TestOpen_RestoresTriggersAndAuditsIt(t *testing.T) {
	for name, statements := range unprotect() {
		o := storetest.Options(t)
		db := storetest.OpenAgain(t, o)
		storetest.Audit(t, db, 2)
		for _, s := range statements {
			if o.URL != "" {
				postgrestest.Run(t, o.URL, s)
			} else {
				exec(t, db, s)
			}
		}
		if missing, err := db.AuditUnguarded(t.Context()); len(missing) != 1 || err != nil {
			t.Errorf("%s: %v, %v", name, missing, err)
		}
		db.Close()
		_, err := inspect.Check(t.Context(), storetest.Source(o), nil)
		if broken := (*audittrail.Break)(nil); !errors.As(err, &broken) || !strings.Contains(err.Error(), "triggers that protect it are missing: audit_entries_") {
			t.Errorf("%s: the check says %v", name, err)
		}
		db = storetest.OpenAgain(t, o)
		if missing, err := db.AuditUnguarded(t.Context()); len(missing) != 0 || err != nil {
			t.Errorf("%s: after the start %v, %v", name, missing, err)
		}
		var action string
		if err := db.QueryRow(t.Context(), "SELECT action FROM audit_entries ORDER BY seq DESC LIMIT 1").Scan(&action); err != nil || action != "audit.triggers_restored" {
			t.Errorf("%s: newest entry is %q, %v", name, action, err)
		}
	}
}

// An empty trail does not mean that there was no key.
func TestCheck_ReportsThatTheKeyWasChecked(t *testing.T) {
	o := storetest.Options(t)
	db := storetest.OpenAgain(t, o)
	db.Close()
	if report, err := inspect.Check(t.Context(), storetest.Source(o), nil); err != nil || !report.KeyChecked {
		t.Errorf("an empty trail: %+v, %v", report, err)
	}
}

func TestVerifyStep_ReachesTheEndAndContinues(t *testing.T) {
	db := storetest.Open(t)
	var at audittrail.Position
	step := func(limit int, wantSeq int64, wantEnded bool) {
		t.Helper()
		next, ended, err := db.VerifyAuditStep(t.Context(), at, limit)
		if err != nil || next.Seq() != wantSeq || ended != wantEnded {
			t.Fatalf("came to %d, ended %v, %v; want %d, %v", next.Seq(), ended, err, wantSeq, wantEnded)
		}
		at = next
	}
	step(4, 0, true)
	storetest.Audit(t, db, 10)
	step(4, 4, false)
	step(4, 8, false)
	step(4, 10, true)
	storetest.Audit(t, db, 1)
	step(1, 11, false) // only the next step finds out that no entry follows
	step(1, 11, true)
}

func TestVerifyStep_NamesTheFirstWrongEntry(t *testing.T) {
	for name, c := range map[string]struct {
		statement string
		want      int64
	}{
		"changed": {"UPDATE audit_entries SET actor = 'x' WHERE seq = 7", 7},
		"removed": {"DELETE FROM audit_entries WHERE seq = 7", 7},
	} {
		o := storetest.Options(t)
		db := storetest.OpenAgain(t, o)
		storetest.Audit(t, db, 10)
		db.Close()
		run(t, o, "DROP TRIGGER audit_entries_no_update", "DROP TRIGGER audit_entries_no_delete", c.statement)
		db = storetest.OpenAgain(t, o)
		var at audittrail.Position
		var err error
		for ended := false; !ended && err == nil; {
			at, ended, err = db.VerifyAuditStep(t.Context(), at, 3)
		}
		var broken *audittrail.Break
		if !errors.As(err, &broken) || broken.Seq != c.want || at.Seq() != c.want-1 {
			t.Errorf("%s: stopped at %d with %v, want entry %d", name, at.Seq(), err, c.want)
		}
	}
}

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
