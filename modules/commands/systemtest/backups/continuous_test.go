package backups_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

// TestContinuousBackup_SurvivesKills kills a server that ships its changes, under load, and restores each time what it has
// shipped. A stop that is not a kill ships everything.
func TestContinuousBackup_SurvivesKills(t *testing.T) {
	work := t.TempDir()
	dir, vault := filepath.Join(work, "data"), filepath.Join(work, "vault")
	acknowledged := 0
	for round := range testenv.Rounds(0, 3, 200) {
		p := systemtest.Start(t, dir, "--backup.url="+vault)
		admin := p.Admin()
		if round == 0 {
			shipped(t, p) // a kill may come before the first part
		}
		for _, w := range systemtest.WriteUntilDead(t, p, admin, round, 150, p.Kill) {
			if w.Acknowledged != "" {
				acknowledged++
			}
		}
		p.Kill()
		if periods := strings.Count(systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "restore", "--list", vault)), "\n"); periods == 0 {
			t.Fatal("nothing was shipped")
		}
		restoreLatest(t, dir, vault, filepath.Join(work, "restored"), 0)
	}
	p := systemtest.Start(t, dir, "--backup.url="+vault)
	customers := p.Admin().Total(t, "/v1/customers?limit=-1")
	if code := p.Stop(); code != 0 || customers < acknowledged {
		t.Errorf("exit code %d, %d customers of %d", code, customers, acknowledged)
	}
	restoreLatest(t, dir, vault, filepath.Join(work, "restored"), customers)
}

// restoreLatest restores the latest state and checks it: all of it, and that it has at least so many customers. It is deleted
// afterwards.
func restoreLatest(t *testing.T, dir, vault, to string, least int) {
	t.Helper()
	key, err := os.ReadFile(filepath.Join(dir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	environ := []string{"KONTOR_SECRET_KEY=" + strings.TrimSpace(string(key))}
	systemtest.ExpectFailure(t, systemtest.Run(t, nil, "restore", vault, "--data.dir", to), "KONTOR_SECRET_KEY")
	systemtest.ExpectSuccess(t, systemtest.Run(t, environ, "restore", vault, "--data.dir", to))
	if out := systemtest.ExpectSuccess(t, systemtest.Run(t, environ, "check", "--data.dir", to)); !strings.Contains(out, "is intact") {
		t.Errorf("check printed %q", out)
	}
	if least > 0 {
		p := systemtest.StartWith(t, append(environ, systemtest.SecretsEnv...), "--data.dir="+to)
		if got := p.Admin().Total(t, "/v1/customers?limit=-1"); got != least {
			t.Errorf("%d customers were restored of %d", got, least)
		}
		p.Kill()
	}
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
}
