package commands_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kontor/store/testenv"
)

// vault is the target of a continuous backup that two runs of a server have filled.
type vault struct {
	data, dir string
	environ   []string // with the master key
	line      string   // the incarnation
	parts     []string // by their numbers
}

func newVault(t *testing.T) *vault {
	t.Helper()
	v := &vault{data: filepath.Join(t.TempDir(), "data"), dir: filepath.Join(t.TempDir(), "vault")}
	for range 2 { // each start begins a chain
		p := start(t, []string{"KONTOR_ADMIN_EMAIL=root@kontor.example"}, "--data.dir="+v.data, "--backup.url="+v.dir)
		if code := p.stop(); code != 0 {
			t.Fatalf("exit code %d: %s", code, p.stderr)
		}
	}
	v.environ = []string{"KONTOR_SECRET_KEY=" + strings.TrimSpace(keyOf(t, v.data))}
	var err error
	if v.parts, err = filepath.Glob(filepath.Join(v.dir, "*", "*", "*.age")); err != nil || len(v.parts) < 2 {
		t.Fatalf("%v, %v", v.parts, err)
	}
	v.line = filepath.Base(filepath.Dir(filepath.Dir(v.parts[0])))
	return v
}

func (v *vault) newest() string { return v.parts[len(v.parts)-1] }

// without takes a part away until the function that it returns puts it back.
func (v *vault) without(t *testing.T, part string) (undo func()) {
	t.Helper()
	if err := os.Rename(part, part+".away"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Rename(part+".away", part); err != nil {
			t.Error(err)
		}
	}
}

func TestBackupVerify(t *testing.T) {
	v := newVault(t)
	work := t.TempDir()
	verify := func(more ...string) outcome {
		return run(v.environ, "", append([]string{"backup", "verify", v.dir, "--work", work}, more...)...)
	}
	intact := regexp.MustCompile(` is intact up to commit [1-9]\d*: .*records match the audit trail, the content of 0 files matches`)
	o := verify()
	expectSuccess(t, o, v.line)
	if !intact.MatchString(o.stdout) {
		t.Errorf("printed %q", o.stdout)
	}
	expectSuccess(t, verify("--incarnation", v.line), "is intact up to commit")
	expectSuccess(t, verify("--at=2999-01-01T00:00:00Z"), "is intact up to commit")
	// The key is that of the data directory, the address that of the settings.
	expectSuccess(t, run([]string{"KONTOR_BACKUP_URL=" + v.dir}, "", "backup", "verify", "--data.dir", v.data), "is intact up to commit")

	expectFailure(t, verify("--at=2001-01-01T00:00:00Z"), "there is no backup of that time")
	expectFailure(t, verify("--at=tomorrow"), "--at must be a time")
	expectFailure(t, verify("--incarnation=aaaaaaaaaaaaaaaa"), "holds no incarnation")
	expectFailure(t, run(nil, "", "backup", "verify"), "backup.url")
	expectFailure(t, run(nil, "", "backup", "verify", v.dir, "--data.dir", t.TempDir()), "KONTOR_SECRET_KEY")
	expectFailure(t, run([]string{"KONTOR_SECRET_KEY=" + strings.Repeat("ab", 32)}, "", "backup", "verify", v.dir), "nothing in")
	expectFailure(t, verify("--work", filepath.Join(work, "missing")), "the backup cannot be restored for the check")

	undo := v.without(t, v.newest())
	expectFailure(t, verify(), "--allow-gap restores the newest complete state before")
	o = verify("--allow-gap")
	if o.code != 0 || !intact.MatchString(o.stdout) || !strings.Contains(o.stderr, "kontor: note: in "+v.line+", gap: ") {
		t.Errorf("exit %d, stdout %q, stderr %q", o.code, o.stdout, o.stderr)
	}
	undo()
	data, err := os.ReadFile(v.newest())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(v.newest(), data[:len(data)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	expectFailure(t, verify(), filepath.Base(v.newest()))
	if left, err := os.ReadDir(work); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestRestore_Lines(t *testing.T) {
	v := newVault(t)
	restore := func(more ...string) outcome {
		return run(v.environ, "", append([]string{"restore", v.dir, "--data.dir", filepath.Join(t.TempDir(), "restored")}, more...)...)
	}
	o := restore("--list")
	expectSuccess(t, o, "line "+v.line+": commits ")
	if strings.Contains(o.stdout, "gap") || strings.Contains(o.stdout, "foreign") || strings.Count(o.stdout, "\n") != 1 {
		t.Errorf("the list is %q", o.stdout)
	}
	expectSuccess(t, run(nil, "", "restore", "--list", v.dir), "line "+v.line)
	expectFailure(t, run(nil, "", "restore", "--list", t.TempDir()), "there is no backup")

	// A copy of the data directory ships nothing to the same place, until backup.line confirms it.
	copied := filepath.Join(t.TempDir(), "copied")
	if err := os.CopyFS(copied, os.DirFS(v.data)); err != nil {
		t.Fatal(err)
	}
	p := start(t, nil, "--data.dir="+copied, "--backup.url="+v.dir)
	testenv.Wait(t, "the first attempt to ship the copy", func() bool {
		status, answer := p.call(t, "GET", "/readyz", "")
		return status == 200 && strings.Contains(answer, `"backup":"warning"`)
	})
	p.stop()
	confirmed := wordAfter(p.stderr.String(), "backup.line=")
	if confirmed == "" || strings.Count(restore("--list").stdout, "\n") != 1 {
		t.Fatalf("the copy may continue as %q; it logged %s; the list is %s", confirmed, p.stderr, restore("--list").stdout)
	}
	o = restore()
	expectSuccess(t, o, "commit ")
	incarnation := regexp.MustCompile(`It is the incarnation ([a-z2-7]{16})\. .* backup\.line=([a-z2-7]{16})\.`).FindStringSubmatch(o.stdout)
	if incarnation == nil || incarnation[1] != incarnation[2] || incarnation[1] == v.line || incarnation[1] == confirmed {
		t.Errorf("the restore printed %q", o.stdout)
	}
	p = start(t, nil, "--data.dir="+copied, "--backup.url="+v.dir, "--backup.line="+confirmed)
	p.stop()
	o = restore("--list")
	expectSuccess(t, o, "it continues "+v.line)
	if !strings.Contains(o.stdout, confirmed+" continues the line") {
		t.Errorf("the list is %q", o.stdout)
	}
	if o := restore(); o.code != 0 || !strings.Contains(o.stdout, " of "+confirmed+" was restored") || !strings.Contains(o.stderr, "kontor: note: another line: "+v.line) {
		t.Errorf("exit %d, stdout %q, stderr %q", o.code, o.stdout, o.stderr)
	}
	if o := restore("--incarnation", v.line); o.code != 0 || !strings.Contains(o.stdout, " of "+v.line+" was restored") {
		t.Errorf("exit %d, stdout %q, stderr %q", o.code, o.stdout, o.stderr)
	}
	// The former server does not begin again by itself.
	p = start(t, nil, "--data.dir="+v.data, "--backup.url="+v.dir)
	p.stop()
	if !strings.Contains(p.stderr.String(), "backup.line="+v.line) {
		t.Errorf("the former server logged %s", p.stderr)
	}

	v.without(t, v.newest())
	expectFailure(t, restore("--incarnation", v.line), "--allow-gap")
	if o := restore("--incarnation", v.line, "--allow-gap"); o.code != 0 || !strings.Contains(o.stderr, "in "+v.line+", gap: ") {
		t.Errorf("exit %d, stdout %q, stderr %q", o.code, o.stdout, o.stderr)
	}
	for _, flag := range []string{"--list", "--allow-gap", "--incarnation=x", "--at=2026-01-31T08:00:00Z"} {
		expectFailure(t, run(nil, "", "restore", "kontor.backup", flag), "are for the address of a continuous backup")
	}
}
