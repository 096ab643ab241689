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
