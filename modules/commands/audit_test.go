package commands_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAuditCommands(t *testing.T) {
	t.Parallel()
	in := newServedData(t)
	key := run(nil, "", "audit", "key", in)
	expectSuccess(t, key, "=")
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	expectSuccess(t, run(nil, "", "audit", "export", file, in), "audit entries were exported to")
	expectFailure(t, run(nil, "", "audit", "export", file, in), "exists")
	expectSuccess(t, run(nil, "", "audit", "verify", file), strings.TrimSpace(key.stdout))
	expectSuccess(t, run(nil, "", "audit", "verify", file, "--key", strings.TrimSpace(key.stdout)), "is valid: entries 1 to")
	expectFailure(t, run(nil, "", "audit", "verify", file, "--key", strings.Repeat("A", 43)+"="), "signed with another key")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if out := run(nil, "", "audit", "export", in); out.stdout == "" || strings.Count(out.stdout, "\n") != strings.Count(string(text), "\n") {
		t.Errorf("to standard output: got %d lines, want %d", strings.Count(out.stdout, "\n"), strings.Count(string(text), "\n"))
	}
	changed := strings.Replace(string(text), `"rec_type":"users"`, `"rec_type":"roles"`, 1)
	expectFailure(t, run(nil, changed, "audit", "verify", "-"), "was changed")
	expectFailure(t, run(nil, "", "audit", "verify", filepath.Join(t.TempDir(), "nothing")), "does not exist")
	expectFailure(t, run(nil, "", "audit", "export", "--data.dir="+t.TempDir()), "secret key")
}
