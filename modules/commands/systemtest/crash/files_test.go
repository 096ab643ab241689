package crash_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store"
	"kontor/store/testenv"
)

// evidence returns a file of a size that is accepted as a PDF, different for each n.
func evidence(size, n int) string {
	head, end := fmt.Sprintf("%%PDF-1.4\n%% %d\n", n), "\n%%EOF\n"
	return head + strings.Repeat("k", size-len(head)-len(end)) + end
}

// newEvidence creates a customer with documents, and returns the paths to upload their files to.
func newEvidence(t *testing.T, admin *systemtest.Client, documents int) []string {
	t.Helper()
	customer := "/v1/customers/" + admin.Create(t, "/v1/customers", `{"type":"individual","first_name":"Ada","last_name":"Muster","email":"ada@example.ch"}`)
	var sent []string
	for n := range documents {
		sent = append(sent, fmt.Sprintf(`{"type":"passport","number":"X%d","country":"CH","expiry_date":"2099-01-01"}`, n))
	}
	admin.Do(t, "PUT", customer+"/kyc", `{"documents":[`+strings.Join(sent, ",")+`]}`, 200)
	var kyc struct{ Documents []struct{ ID string } }
	if err := json.Unmarshal([]byte(admin.Do(t, "GET", customer+"/kyc", "", 200).Body), &kyc); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, d := range kyc.Documents {
		paths = append(paths, customer+"/kyc/documents/"+d.ID+"/files")
	}
	return paths
}

func pdfs(admin *systemtest.Client) *systemtest.Client {
	return admin.With("Content-Type", "application/pdf")
}

// TestFiles_ParallelUploadsNeedLittleMemory uploads 50 files of 10 MB at the same time, while another user is served.
func TestFiles_ParallelUploadsNeedLittleMemory(t *testing.T) {
	const files, most = 50, 150 // MB
	p := systemtest.Start(t, filepath.Join(t.TempDir(), "data"), "--rate_limits.enabled=false", "--files.quota=10GiB")
	admin := p.Admin()
	paths := newEvidence(t, admin, 2)
	content := evidence(10<<20, 1)
	pdfs(admin).Do(t, "POST", paths[0], content, 201)
	before, _ := systemtest.Usage(p.Cmd.Process.Pid)
	var peak atomic.Int64
	done := make(chan struct{})
	watching := sync.WaitGroup{}
	watching.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			default:
			}
			memory, _ := systemtest.Usage(p.Cmd.Process.Pid)
			peak.Store(max(peak.Load(), int64(memory)))
			if _, err := admin.Try("GET", "/v1/users/me", ""); err != nil {
				t.Error(err)
				return
			}
		}
	})
	var uploads sync.WaitGroup
	for range files {
		c := pdfs(p.Client(admin.Headers...))
		uploads.Go(func() {
			if got, err := c.Try("POST", paths[1], content); err != nil || got.Status != 201 {
				t.Errorf("got %d %s, %v", got.Status, got.Body, err)
			}
		})
	}
	uploads.Wait()
	close(done)
	watching.Wait()
	t.Logf("%d MB before, at most %d MB during %d uploads", before, peak.Load(), files)
	if more := int(peak.Load()) - before; more > most {
		t.Errorf("%d uploads at the same time needed %d MB", files, more)
	}
}

// TestKill_LosesNoFile kills the server in the middle of uploads several times. Every acknowledged file must be whole, and nothing may be
// left of the others.
func TestKill_LosesNoFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	start := func() *systemtest.Process {
		return systemtest.Start(t, dir, "--rate_limits.enabled=false", "--files.quota=10GiB")
	}
	p := start()
	paths := newEvidence(t, p.Admin(), 20)
	digests := map[string]string{} // of acknowledged files, by id
	var mutex sync.Mutex
	var sent atomic.Int64
	for round := range testenv.Rounds(0, 3, 200) {
		var uploads sync.WaitGroup
		acknowledged := make(chan struct{}, 1000)
		for worker := range 4 {
			c := pdfs(p.Client(p.Admin().Headers...))
			uploads.Go(func() {
				for {
					n := int(sent.Add(1))
					content := evidence(100<<10+n%7*400<<10, n)
					got, err := c.Try("POST", paths[(round*4+worker)%len(paths)], content)
					if err != nil { // it was killed
						return
					}
					if got.Status != 201 {
						t.Errorf("got %d %s", got.Status, got.Body)
						return
					}
					var file struct{ ID, SHA256 string }
					if err := json.Unmarshal([]byte(got.Body), &file); err != nil {
						t.Error(err)
						return
					}
					sum := sha256.Sum256([]byte(content))
					mutex.Lock()
					digests[file.ID] = hex.EncodeToString(sum[:])
					mutex.Unlock()
					acknowledged <- struct{}{}
				}
			})
		}
		for range 5 + round {
			testenv.Receive(t, "an acknowledged file", acknowledged)
		}
		p.Kill()
		uploads.Wait()
		if out := systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--files", "--data.dir", dir)); !strings.Contains(out, "matches their digests") {
			t.Errorf("check printed %q", out)
		}
		p = start()
	}
	admin := p.Admin()
	for id, digest := range digests {
		got := admin.Do(t, "GET", "/v1/files/"+id+"/content", "", 200)
		if sum := sha256.Sum256([]byte(got.Body)); hex.EncodeToString(sum[:]) != digest {
			t.Errorf("file %s has another content", id)
		}
	}
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	db, err := store.Open(context.Background(), store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var running int
	if err := db.QueryRow(context.Background(), `SELECT COUNT(*) FROM files WHERE status = 'uploading'`).Scan(&running); err != nil || running != 0 {
		t.Errorf("%d uploads of killed processes are not discarded, %v", running, err)
	}
	t.Logf("%d files were acknowledged", len(digests))
}

// TestFiles_AreInBackups rotates the master key, restores a backup and checks the content of its files.
func TestFiles_AreInBackups(t *testing.T) {
	dir, backup, restored := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "restored")
	p := systemtest.Start(t, dir)
	admin := p.Admin()
	content := evidence(1<<20, 1)
	var file struct{ ID string }
	got := pdfs(admin).Do(t, "POST", newEvidence(t, admin, 1)[0], content, 201)
	if err := json.Unmarshal([]byte(got.Body), &file); err != nil {
		t.Fatal(err)
	}
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "key", "rotate", "--data.dir", dir))
	if now := admin.Do(t, "GET", "/v1/files/"+file.ID+"/content", "", 200); now.Body != content {
		t.Error("the content differs after a rotation of the key")
	}
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--files", "--data.dir", dir))
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "backup", backup, "--data.dir", dir))
	p.Stop()
	key, err := os.ReadFile(filepath.Join(dir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	environ := []string{"KONTOR_SECRET_KEY=" + strings.TrimSpace(string(key))}
	systemtest.ExpectSuccess(t, systemtest.Run(t, environ, "restore", backup, "--data.dir", restored))
	if out := systemtest.ExpectSuccess(t, systemtest.Run(t, environ, "check", "--files", "--data.dir", restored)); !strings.Contains(out, "content of 1 files") {
		t.Errorf("check of the restored directory printed %q", out)
	}
}
