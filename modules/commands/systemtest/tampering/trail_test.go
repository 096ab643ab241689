package tampering_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store/storetest"
)

// Neither the check nor a start may accept an audit trail that was erased without the key.
func TestStart_RejectsAnErasedTrail(t *testing.T) {
	dir := systemtest.NewDataDir(t)
	const unguarded = "DROP TRIGGER audit_entries_no_update; DROP TRIGGER audit_entries_no_delete; "
	for _, c := range []struct{ name, statement, says string }{
		{"entries and head", unguarded + "DELETE FROM audit_entries; DELETE FROM meta WHERE name = 'audit_head'", "its signed head is missing"},
		{"entries", unguarded + "DELETE FROM audit_entries", "it is missing; the trail was signed up to entry"},
		{"head", "DELETE FROM meta WHERE name = 'audit_head'", "its signed head is missing"},
		{"entries, head and check value of the key", unguarded + "DELETE FROM audit_entries; DELETE FROM meta", "the check value of the secret key is missing"},
		{"newest entry", unguarded + "DELETE FROM audit_entries WHERE seq = (SELECT MAX(seq) FROM audit_entries)", "it is missing; the trail was signed up to entry"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tampered := systemtest.CopyDataDir(t, dir)
			storetest.Tamper(t, filepath.Join(tampered, "kontor.db"), c.statement)
			systemtest.ExpectFailure(t, systemtest.Run(t, nil, "check", "--data.dir", tampered), c.says)
			start := systemtest.Run(t, nil, "--data.dir", tampered, "--server.listen", "127.0.0.1:0")
			systemtest.ExpectFailure(t, start, c.says)
			if !strings.Contains(start.Stderr, "tampered with") || !strings.Contains(start.Stderr, "restore a backup") {
				t.Errorf("the message does not state what to do: %q", start.Stderr)
			}
		})
	}
}

// The check reports a missing key and a wrong key.
func TestCheck_ReportsTheStateOfTheKey(t *testing.T) {
	const absent = "the master key is missing"
	dir := systemtest.NewDataDir(t)
	if out := systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--data.dir", dir)); strings.Contains(out, absent) || !strings.Contains(out, "records match the audit trail") {
		t.Errorf("with its key: %q", out)
	}
	key, err := os.ReadFile(filepath.Join(dir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	other := "KONTOR_SECRET_KEY=" + strings.Repeat("ab", 32)
	systemtest.ExpectFailure(t, systemtest.Run(t, []string{other}, "check", "--data.dir", dir), "another secret key")

	without := systemtest.CopyDataDir(t, dir)
	if err := os.Remove(filepath.Join(without, "secret.key")); err != nil {
		t.Fatal(err)
	}
	if out := systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--data.dir", without)); !strings.Contains(out, absent) {
		t.Errorf("without a key: %q", out)
	}
	given := "KONTOR_SECRET_KEY=" + strings.TrimSpace(string(key))
	if out := systemtest.ExpectSuccess(t, systemtest.Run(t, []string{given}, "check", "--data.dir", without)); strings.Contains(out, absent) {
		t.Errorf("with the key in the environment: %q", out)
	}

	erased := systemtest.CopyDataDir(t, dir)
	storetest.Tamper(t, filepath.Join(erased, "kontor.db"), "DELETE FROM meta WHERE name = 'key_check'")
	e := systemtest.Run(t, nil, "check", "--data.dir", erased)
	systemtest.ExpectFailure(t, e, "the check value of the secret key is missing")
	if strings.Contains(e.Stderr, absent) {
		t.Errorf("the key is present: %q", e.Stderr)
	}
	storetest.Tamper(t, filepath.Join(without, "kontor.db"), "DELETE FROM meta WHERE name = 'audit_head'")
	systemtest.ExpectFailure(t, systemtest.Run(t, nil, "check", "--data.dir", without), "its signed head is missing")
}
