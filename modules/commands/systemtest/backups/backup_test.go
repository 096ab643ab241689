package backups_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"kontor/modules/commands/systemtest"
)

// TestBackup_RestoresARunningServerElsewhere backs up a server under writes.
func TestBackup_RestoresARunningServerElsewhere(t *testing.T) {
	work := t.TempDir()
	dir, file, elsewhere := filepath.Join(work, "data"), filepath.Join(work, "kontor.backup"), filepath.Join(work, "elsewhere")
	p := systemtest.Start(t, dir)
	admin := p.Admin()
	var created atomic.Int64
	stop := make(chan struct{})
	var wait sync.WaitGroup
	for range 4 {
		c := p.Client(admin.Headers...)
		wait.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got, err := c.Try("POST", "/v1/customers", `{"first_name":"Anna","last_name":"Muster","email":"anna@example.ch"}`); err != nil || got.Status != 201 {
					t.Errorf("during the backup: %d %s, %v", got.Status, got.Body, err)
					return
				}
				created.Add(1)
			}
		})
	}
	least := created.Load()
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "backup", file, "--data.dir", dir))
	key := filepath.Join(work, "kontor.key")
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "key", "export", key, "--data.dir", dir))
	close(stop)
	wait.Wait()
	systemtest.ExpectFailure(t, systemtest.Run(t, nil, "backup", file, "--data.dir", dir), "exists")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup has mode %v, %v", info.Mode(), err)
	}
	p.Kill() // simulates the loss of the machine

	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "restore", file, "--data.dir", elsewhere))
	systemtest.ExpectFailure(t, systemtest.Run(t, nil, "restore", file, "--data.dir", elsewhere), "only restored into an empty directory")
	systemtest.ExpectFailure(t, systemtest.Run(t, nil, "serve", "--server.listen=127.0.0.1:0", "--data.dir", elsewhere), "kontor key import")
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "key", "import", key, "--data.dir", elsewhere))
	if out := systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--data.dir", elsewhere)); !strings.Contains(out, "is intact") {
		t.Errorf("check printed %q", out)
	}
	restored := systemtest.Start(t, elsewhere)
	customers := int64(restored.Admin().Total(t, "/v1/customers?limit=-1"))
	if customers < least || customers > created.Load() {
		t.Errorf("%d customers, want %d to %d", customers, least, created.Load())
	}
	// Sessions of the lost machine remain valid, because the key that signs their tokens was imported.
	restored.Client(admin.Headers...).Do(t, "GET", "/v1/users/me", "", 200)
}
