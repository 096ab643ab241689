package faults_test

import (
	"os"
	"path/filepath"
	"testing"

	"kontor/modules/commands/systemtest"
)

// A start without the acknowledged writes of the log must be rejected, unless the loss is accepted. The loss is audited.
func TestFaults_ALostLogIsReported(t *testing.T) {
	for name, damage := range map[string]func(log string) error{
		"missing":   os.Remove,
		"emptied":   func(log string) error { return os.Truncate(log, 0) },
		"truncated": func(log string) error { return os.Truncate(log, 20_000) },
		"damaged":   func(log string) error { return systemtest.FlipByte(log, 5000) },
		"replaced":  func(log string) error { return os.WriteFile(log, make([]byte, 8192), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			p := systemtest.Start(t, dir)
			admin := p.Admin()
			p.WaitForCheckpoint()
			systemtest.Inject(t, p, filepath.Join(dir, "kontor.db"), "pwrite64:error=ENOSPC") // no checkpoint from here on
			for range 20 {
				admin.Do(t, "POST", "/v1/customers", newCustomer, 201)
			}
			p.Kill()
			if err := damage(filepath.Join(dir, "kontor.db-wal")); err != nil {
				t.Fatal(err)
			}
			args := []string{"serve", "--server.listen=127.0.0.1:0", "--data.dir", dir}
			systemtest.ExpectFailure(t, systemtest.Run(t, systemtest.SecretsEnv, args...), "kontor.db-wal")
			systemtest.ExpectFailure(t, systemtest.Run(t, systemtest.SecretsEnv, args...), "--accept-loss")
			systemtest.ExpectFailure(t, systemtest.Run(t, nil, "check", "--data.dir", dir), "missing")

			p = systemtest.Start(t, dir, "--accept-loss")
			if n := p.Admin().Total(t, "/v1/audit?search.action=database.accept_loss"); n != 1 {
				t.Errorf("%d audit entries about the loss", n)
			}
			if code := p.Stop(); code != 0 {
				t.Errorf("exit code %d: %s", code, p.Stderr)
			}
			systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--data.dir", dir))
			if p := systemtest.Start(t, dir); p.Stop() != 0 {
				t.Error("the next start reports the accepted loss again")
			}
		})
	}
}
