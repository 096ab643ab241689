package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestBackup_RestoresARunningServerElsewhere backs up a server under writes.
func TestBackup_RestoresARunningServerElsewhere(t *testing.T) {
	work := t.TempDir()
	dir, file, elsewhere := filepath.Join(work, "data"), filepath.Join(work, "kontor.backup"), filepath.Join(work, "elsewhere")
	p := start(t, dir)
	admin := p.admin()
	var created atomic.Int64
	stop := make(chan struct{})
	var wait sync.WaitGroup
	for range 4 {
		c := p.client(admin.headers...)
		wait.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got, err := c.try("POST", "/v1/customers", `{"first_name":"Anna","last_name":"Muster","email":"anna@example.ch"}`); err != nil || got.status != 201 {
					t.Errorf("during the backup: %d %s, %v", got.status, got.body, err)
					return
				}
				created.Add(1)
			}
		})
	}
	least := created.Load()
	expectSuccess(t, run(t, nil, "backup", file, "--data.dir", dir))
	key := filepath.Join(work, "kontor.key")
	expectSuccess(t, run(t, nil, "key", "export", key, "--data.dir", dir))
	close(stop)
	wait.Wait()
	expectFailure(t, run(t, nil, "backup", file, "--data.dir", dir), "exists")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup has mode %v, %v", info.Mode(), err)
	}
	p.kill() // simulates the loss of the machine

	expectSuccess(t, run(t, nil, "restore", file, "--data.dir", elsewhere))
	expectFailure(t, run(t, nil, "restore", file, "--data.dir", elsewhere), "only restored into an empty directory")
	expectFailure(t, run(t, nil, "serve", "--server.listen=127.0.0.1:0", "--data.dir", elsewhere), "kontor key import")
	expectSuccess(t, run(t, nil, "key", "import", key, "--data.dir", elsewhere))
	if out := expectSuccess(t, run(t, nil, "check", "--data.dir", elsewhere)); !strings.Contains(out, "is intact") {
		t.Errorf("check printed %q", out)
	}
	restored := start(t, elsewhere)
	customers := int64(restored.admin().total(t, "/v1/customers?limit=-1"))
	if customers < least || customers > created.Load() {
		t.Errorf("%d customers, want %d to %d", customers, least, created.Load())
	}
	// Sessions of the lost machine remain valid, because the key that signs their tokens was imported.
	restored.client(admin.headers...).do(t, "GET", "/v1/users/me", "", 200)
}
