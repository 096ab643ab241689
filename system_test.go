package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kontor/store/storetest"
)

// newData returns a data directory that a server has used.
func newData(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	p := start(t, dir)
	p.admin().do(t, "POST", "/v1/customers", `{"first_name":"Anna","last_name":"Muster","email":"anna@example.ch"}`, 201)
	if code := p.stop(); code != 0 {
		t.Fatalf("exit code %d: %s", code, p.stderr)
	}
	return dir
}

// contents returns a digest of every file below a path, except the lock, which names the last process.
func contents(t *testing.T, path string) map[string][sha256.Size]byte {
	t.Helper()
	all := map[string][sha256.Size]byte{}
	err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "kontor.lock" {
			return err
		}
		data, err := os.ReadFile(name)
		all[name] = sha256.Sum256(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestStart_RefusedInOneLine starts the program where it cannot run. It must print the reason in one line, end with 1, and
// change nothing.
func TestStart_RefusedInOneLine(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	for _, c := range []struct {
		name    string
		environ []string
		args    []string
		prepare func(dir string) // changes a data directory that was used
		want    string
	}{
		{name: "wrong setting", args: []string{"--auth.otp_minutes=soon"}, want: "auth.otp_minutes"},
		{name: "wrong setting in the environment", environ: []string{"KONTOR_LOG_LEVEL=loud"}, want: "KONTOR_LOG_LEVEL"},
		{name: "unknown setting", args: []string{"--server.lisen=127.0.0.1:1"}, want: "server.lisen"},
		{name: "taken port", args: []string{"--server.listen=" + taken.Addr().String()}, want: "already in use"},
		{name: "damaged database", want: "damaged", prepare: func(dir string) {
			writeFile(t, filepath.Join(dir, "kontor.db"), bytes.Repeat([]byte("not a database "), 4096))
		}},
		{name: "truncated database", want: "kontor.db", prepare: func(dir string) {
			if err := os.Truncate(filepath.Join(dir, "kontor.db"), 10_000); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "database of a newer program", want: "newer version", prepare: func(dir string) {
			storetest.Tamper(t, filepath.Join(dir, "kontor.db"), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)")
		}},
		{name: "wrong key", want: "key", environ: []string{"KONTOR_SECRET_KEY=" + strings.Repeat("0", 64)}},
		{name: "key of another form", want: "key", environ: []string{"KONTOR_SECRET_KEY=not a key but long enough to be one"}},
		{name: "lost key", want: "secret.key", prepare: func(dir string) {
			if err := os.Remove(filepath.Join(dir, "secret.key")); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "lost database", want: "kontor.db", prepare: func(dir string) {
			if err := os.Rename(filepath.Join(dir, "kontor.db"), filepath.Join(dir, "kontor.db-wal")); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := newData(t)
			if c.prepare != nil {
				c.prepare(dir)
			}
			before := contents(t, dir)
			args := append([]string{"serve", "--server.listen=127.0.0.1:0", "--data.dir", dir}, c.args...)
			refused(t, run(t, append(givenSecrets, c.environ...), args...), c.want)
			if after := contents(t, dir); !equal(before, after) {
				t.Errorf("files before %d, after %d, or one of them has changed", len(before), len(after))
			}
		})
	}
}

func equal(a, b map[string][sha256.Size]byte) bool {
	for name, sum := range a {
		if b[name] != sum {
			return false
		}
	}
	return len(a) == len(b)
}

// refused expects one line on standard error that contains want, no standard output, and exit status 1.
func refused(t *testing.T, e ended, want string) {
	t.Helper()
	if e.code != 1 || strings.Count(e.stderr, "\n") != 1 || !strings.HasPrefix(e.stderr, "kontor: ") || !strings.Contains(e.stderr, want) {
		t.Errorf("exit code %d, stderr %q; want 1 and one line that contains %q", e.code, e.stderr, want)
	}
	if e.stdout != "" {
		t.Errorf("a refused start printed %q", e.stdout)
	}
}

func TestStart_RefusesADirectoryThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "data")
	writeFile(t, file, []byte("mine"))
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		refused(t, run(t, nil, "serve", "--server.listen=127.0.0.1:0", "--data.dir", dir), file)
	}
	if left, err := os.ReadFile(file); err != nil || string(left) != "mine" {
		t.Errorf("the file in the place of the directory is now %q, %v", left, err)
	}
}

func TestStart_RefusesASecondProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := start(t, dir)
	for _, args := range [][]string{
		{"serve", "--server.listen=127.0.0.1:0"}, {"user", "role", adminEmail}, {"apikey", "list"},
	} {
		refused(t, run(t, nil, append(args, "--data.dir", dir)...), "in use by process")
	}
	p.admin().do(t, "GET", "/v1/users/me", "", 200)
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if p := start(t, dir); p.stop() != 0 {
		t.Error("the directory is not free after the first process has ended")
	}
}

// TestStop_LetsRequestsFinish stops a server under load. Until it reports the shutdown, every request gets its normal
// response. No connection is cut.
func TestStop_LetsRequestsFinish(t *testing.T) {
	const limit = 5 * time.Second
	p := start(t, filepath.Join(t.TempDir(), "data"), "--server.shutdown_seconds=5", "--auth.cooling_off.free_attempts=1000")
	body, err := json.Marshal(map[string]string{"user_id": adminEmail, "password": adminPassword})
	if err != nil {
		t.Fatal(err)
	}
	var done, refusals atomic.Int64
	begun := make(chan struct{}, 1024)
	var wait sync.WaitGroup
	for range 8 { // a sign-in takes longer than other requests
		c := p.client("Accept-Language", "de")
		wait.Go(func() {
			for {
				got, err := c.try("POST", "/authenticate", string(body))
				switch {
				case err != nil:
					t.Errorf("a request was cut: %v", err)
					return
				case got.status == 200:
					done.Add(1)
					select {
					case begun <- struct{}{}:
					default:
					}
				case got.status == 503 && got.header.Get("Retry-After") != "":
					var health struct {
						OverallStatus string `json:"overall_status"`
						Message       string
						Timestamp     time.Time
					}
					if got.into(t, &health); health.OverallStatus != "unhealthy" || health.Message == "" || health.Timestamp.IsZero() {
						t.Errorf("while shutting down: %s", got.body)
					}
					refusals.Add(1)
					return
				default:
					t.Errorf("got %d %s", got.status, got.body)
					return
				}
			}
		})
	}
	for range 8 {
		<-begun
	}
	asked := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	wait.Wait()
	if code := p.code(); code != 0 {
		t.Errorf("exit code %d: %s", code, p.stderr)
	}
	if took := time.Since(asked); took > limit {
		t.Errorf("the stop took %v", took)
	}
	if refusals.Load() == 0 || done.Load() < 8 {
		t.Errorf("%d requests were answered, %d were rejected for the shutdown", done.Load(), refusals.Load())
	}
	if log := p.stderr.String(); !strings.Contains(log, `"msg":"stopped"`) {
		t.Errorf("the end is missing in the log: %s", log)
	}
}

// TestBackup_BringsARunningServerBackElsewhere backs up a server under write load and restores the backup elsewhere.
func TestBackup_BringsARunningServerBackElsewhere(t *testing.T) {
	work := t.TempDir()
	dir, file, elsewhere := filepath.Join(work, "data"), filepath.Join(work, "kontor.backup"), filepath.Join(work, "elsewhere")
	p := start(t, dir)
	admin := p.admin()
	var made atomic.Int64
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
				made.Add(1)
			}
		})
	}
	least := made.Load()
	succeeds(t, run(t, nil, "backup", file, "--data.dir", dir))
	close(stop)
	wait.Wait()
	refusedAgain := run(t, nil, "backup", file, "--data.dir", dir)
	refused(t, refusedAgain, "exists")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup has mode %v, %v", info.Mode(), err)
	}
	p.kill() // simulates the loss of the machine

	succeeds(t, run(t, nil, "restore", file, "--data.dir", elsewhere))
	refused(t, run(t, nil, "restore", file, "--data.dir", elsewhere), "only restored into an empty directory")
	if said := succeeds(t, run(t, nil, "check", "--data.dir", elsewhere)); !strings.Contains(said, "is intact") {
		t.Errorf("check says %q", said)
	}
	restored := start(t, elsewhere)
	customers := int64(restored.admin().total(t, "/v1/customers?limit=-1"))
	if customers < least || customers > made.Load() {
		t.Errorf("%d customers, want %d to %d", customers, least, made.Load())
	}
	// A session of the lost machine stays valid: its token was signed with the same key.
	restored.client(admin.headers...).do(t, "GET", "/v1/users/me", "", 200)
}
