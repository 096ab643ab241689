package audittrail_test

import (
	"errors"
	"testing"

	"kontor/store/audittrail"
	"kontor/store/storetest"
)

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
		run(t, o, "DROP TRIGGER audit_entries_no_update", "DROP TRIGGER audit_entries_no_delete", c.statement)
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
