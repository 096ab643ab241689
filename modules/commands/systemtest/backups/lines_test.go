package backups_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

// createCustomers creates so many customers.
func createCustomers(t *testing.T, c *systemtest.Client, n int) {
	t.Helper()
	for range n {
		c.Do(t, "POST", "/v1/customers", `{"first_name":"Anna","last_name":"Muster","email":"anna@example.ch"}`, 201)
	}
}

// metricsOf returns a function that returns the value of a metric of a server.
func metricsOf(t *testing.T, p *systemtest.Process) func(name string) string {
	t.Helper()
	scraper := p.Scraper() // one connection: the listener of the metrics accepts few
	return func(name string) string {
		t.Helper()
		_, value, _ := strings.Cut(scraper.Do(t, "GET", "/metrics", "", 200).Body, "\n"+name+" ")
		value, _, _ = strings.Cut(value, "\n")
		return value
	}
}

// errorsOf returns the lines that are errors, of the log of a server that has ended: the log may be behind what the server answers.
func errorsOf(p *systemtest.Process) (lines []string) {
	for line := range strings.Lines(p.Stderr.String()) {
		if strings.Contains(line, `"level":"ERROR"`) {
			lines = append(lines, line)
		}
	}
	return lines
}

// shipped waits until the target has all that a server has written.
func shipped(t *testing.T, p *systemtest.Process) {
	t.Helper()
	metric := metricsOf(t, p)
	for range 2 { // the first part may be under way
		before := metric("kontor_backup_objects_total")
		p.Admin() // writes the sign-in
		testenv.Wait(t, "the next part", func() bool { return metric("kontor_backup_objects_total") != before })
	}
}

func keyOf(t *testing.T, dir string) []string {
	t.Helper()
	key, err := os.ReadFile(filepath.Join(dir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	return []string{"KONTOR_SECRET_KEY=" + strings.TrimSpace(string(key))}
}

// TestContinuousBackup_RestoredCopyAndAnotherBank starts a restored copy of the bank, and another bank, with the address of the
// bank's backup. A restore gives the bank.
func TestContinuousBackup_RestoredCopyAndAnotherBank(t *testing.T) {
	work := t.TempDir()
	dir, vault, copied := filepath.Join(work, "data"), filepath.Join(work, "vault"), filepath.Join(work, "copied")
	bank := systemtest.Start(t, dir, "--backup.url="+vault)
	admin := bank.Admin()
	createCustomers(t, admin, 107)
	shipped(t, bank)
	environ := keyOf(t, dir)
	systemtest.ExpectSuccess(t, systemtest.Run(t, environ, "restore", vault, "--data.dir", copied))

	restored := systemtest.StartWith(t, append(environ, systemtest.SecretsEnv...), "--data.dir", copied, "--rate_limits.enabled=false", "--backup.url="+vault)
	other := systemtest.StartWith(t, systemtest.SecretsEnv, "--data.dir", filepath.Join(work, "other"), "--rate_limits.enabled=false", "--backup.url="+vault)
	createCustomers(t, restored.Admin(), 3)
	createCustomers(t, other.Admin(), 5)
	createCustomers(t, admin, 393)
	testenv.Wait(t, "the copy to notice where it comes from", func() bool {
		got, err := restored.Client().Try("GET", "/readyz", "")
		return err == nil && strings.Contains(got.Body, `"backup":"warning"`)
	})
	metric := metricsOf(t, restored)
	if shipped, failing := metric("kontor_backup_objects_total"), metric("kontor_backup_failing"); shipped != "0" || failing != "1" {
		t.Errorf("the copy has shipped %s objects, failing %s", shipped, failing)
	}
	for _, p := range []*systemtest.Process{restored, other, bank} {
		if code := p.Stop(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
	if lines := errorsOf(restored); len(lines) != 1 || !strings.Contains(lines[0], "backup.line=") {
		t.Errorf("the copy logged %q", lines)
	}
	list := systemtest.ExpectSuccess(t, systemtest.Run(t, environ, "restore", "--list", vault))
	if strings.Count(list, "\n") != 2 || strings.Count(list, "foreign") != 1 {
		t.Errorf("the list is %q", list)
	}
	to := filepath.Join(work, "restored")
	o := systemtest.Run(t, environ, "restore", vault, "--data.dir", to)
	if o.Code != 0 || strings.Count(o.Stderr, "kontor: note: foreign: ") != 1 || strings.Count(o.Stderr, "\n") != 1 {
		t.Fatalf("exit code %d, stderr %q", o.Code, o.Stderr)
	}
	p := systemtest.StartWith(t, append(environ, systemtest.SecretsEnv...), "--data.dir="+to)
	if got := p.Admin().Total(t, "/v1/customers?limit=1"); got != 500 {
		t.Errorf("%d customers were restored of 500", got)
	}
	if o := systemtest.Run(t, environ, "backup", "verify", vault); o.Code != 0 || !strings.Contains(o.Stdout, "is intact up to commit") {
		t.Errorf("exit code %d, stdout %q, stderr %q", o.Code, o.Stdout, o.Stderr)
	}
	// With a key of its own, the other bank restores itself.
	if o := systemtest.Run(t, keyOf(t, filepath.Join(work, "other")), "restore", vault, "--data.dir", filepath.Join(work, "the other again")); o.Code != 0 {
		t.Errorf("the other bank: %q", o.Stderr)
	}
}

// TestContinuousBackup_AnotherWriter lets another server write to the line of a running one, as a copied machine does.
func TestContinuousBackup_AnotherWriter(t *testing.T) {
	work := t.TempDir()
	dir, vault := filepath.Join(work, "data"), filepath.Join(work, "vault")
	p := systemtest.Start(t, dir, "--backup.url="+vault)
	admin := p.Admin()
	createCustomers(t, admin, 3)
	shipped(t, p)
	lines, err := filepath.Glob(filepath.Join(vault, "*", "line.age"))
	if err != nil || len(lines) != 1 {
		t.Fatalf("%v, %v", lines, err)
	}
	createCustomers(t, admin, 1)
	metric := metricsOf(t, p)
	testenv.Wait(t, "the server to notice the other one", func() bool {
		systemtest.WriteFile(t, lines[0], []byte("of another server")) // again and again: the server may just have stored its own
		return metric("kontor_backup_displaced") == "1"
	})
	testenv.Wait(t, "its own line", func() bool { return metric("kontor_backup_failing") == "0" })
	testenv.Wait(t, "a warning", func() bool {
		got, err := p.Client().Try("GET", "/readyz", "")
		return err == nil && strings.Contains(got.Body, `"backup":"warning"`)
	})
	createCustomers(t, admin, 4)
	p.Stop()
	if lines := errorsOf(p); len(lines) != 1 || !strings.Contains(lines[0], "another server writes to the line") {
		t.Errorf("logged %q", lines)
	}
	if lines, err = filepath.Glob(filepath.Join(vault, "*", "line.age")); err != nil || len(lines) != 2 {
		t.Errorf("%v, %v", lines, err)
	}
	to := filepath.Join(work, "restored")
	if o := systemtest.Run(t, keyOf(t, dir), "restore", vault, "--data.dir", to); o.Code != 0 {
		t.Fatalf("stderr %q", o.Stderr)
	}
	restored := systemtest.StartWith(t, append(keyOf(t, dir), systemtest.SecretsEnv...), "--data.dir="+to)
	if got := restored.Admin().Total(t, "/v1/customers?limit=1"); got != 8 {
		t.Errorf("%d customers were restored of 8", got)
	}
}

// TestContinuousBackup_ClockAheadAtOneStart starts a server once with a clock that is 400 days ahead. No chain is deleted, and the
// newest state is restored, also by its time.
func TestContinuousBackup_ClockAheadAtOneStart(t *testing.T) {
	right, err := systemtest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	ahead, err := systemtest.Build("kontor400d", "-ldflags=-X kontor/store/clock.linkedShift=9600h")
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	dir, vault := filepath.Join(work, "data"), filepath.Join(work, "vault")
	for _, program := range []string{right, right, ahead, right} {
		p := systemtest.StartProgram(t, program, systemtest.SecretsEnv, "--data.dir", dir, "--rate_limits.enabled=false", "--backup.url="+vault, "--backup.keep_days=1")
		createCustomers(t, p.Admin(), 5)
		if code := p.Stop(); code != 0 {
			t.Fatalf("exit code %d: %s", code, p.Stderr)
		}
	}
	if chains, err := filepath.Glob(filepath.Join(vault, "*", "*Z-*")); err != nil || len(chains) != 4 {
		t.Errorf("%d chains of 4 are left: %v, %v", len(chains), chains, err)
	}
	for name, at := range map[string][]string{"the newest": nil, "now": {"--at=" + time.Now().UTC().Format(time.RFC3339Nano)}} {
		to := filepath.Join(work, name)
		systemtest.ExpectSuccess(t, systemtest.Run(t, keyOf(t, dir), append([]string{"restore", vault, "--data.dir", to}, at...)...))
		p := systemtest.StartWith(t, append(keyOf(t, dir), systemtest.SecretsEnv...), "--data.dir="+to)
		if got := p.Admin().Total(t, "/v1/customers?limit=1"); got != 20 {
			t.Errorf("%s: %d customers were restored of 20", name, got)
		}
		p.Kill()
	}
}
