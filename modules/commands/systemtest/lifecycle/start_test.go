package lifecycle_test

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kontor/modules/commands/systemtest"
	"kontor/store/storetest"
)

// A start that fails must print the reason in one line, exit with 1, and change no file.
func TestStart_FailsWithOneLine(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	used := systemtest.NewDataDir(t)
	for _, c := range []struct {
		name    string
		environ []string
		args    []string
		prepare func(dir string) // changes the data directory
		want    string
	}{
		{name: "wrong setting in the environment", environ: []string{"KONTOR_LOG_LEVEL=loud"}, want: "KONTOR_LOG_LEVEL"},
		{name: "port in use", args: []string{"--server.listen=" + taken.Addr().String()}, want: "already in use"},
		{name: "damaged database", want: "damaged", prepare: func(dir string) {
			systemtest.WriteFile(t, filepath.Join(dir, "kontor.db"), bytes.Repeat([]byte("not a database "), 4096))
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
			dir := systemtest.CopyDataDir(t, used)
			if c.prepare != nil {
				c.prepare(dir)
			}
			before := systemtest.FileDigests(t, dir)
			args := append([]string{"serve", "--server.listen=127.0.0.1:0", "--data.dir", dir}, c.args...)
			systemtest.ExpectFailure(t, systemtest.Run(t, append(systemtest.SecretsEnv, c.environ...), args...), c.want)
			if after := systemtest.FileDigests(t, dir); !systemtest.SameFiles(before, after) {
				t.Errorf("the start changed files: %d before, %d after", len(before), len(after))
			}
		})
	}
}

// TestStop_LetsRequestsFinish stops a server under load. It must answer every request that began before, and later ones with 503
// until it has ended.
func TestStop_LetsRequestsFinish(t *testing.T) {
	for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(end.String(), func(t *testing.T) { stopUnderLoad(t, end) })
	}
}

func stopUnderLoad(t *testing.T, end syscall.Signal) {
	t.Helper()
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, end) // under nohup, the server would ignore the signal as these tests do
	defer signal.Stop(caught)
	p := systemtest.Start(t, filepath.Join(t.TempDir(), "data"), "--server.shutdown_seconds=60", "--auth.cooling_off.free_attempts=1000")
	body, err := json.Marshal(map[string]string{"user_id": systemtest.AdminEmail, "password": systemtest.AdminPassword})
	if err != nil {
		t.Fatal(err)
	}
	var done, rejected atomic.Int64
	var stopping atomic.Bool
	begun := make(chan struct{}, 1024)
	var wait sync.WaitGroup
	for range 8 { // sign-ins are the slowest requests
		c := p.Client("Accept-Language", "de")
		wait.Go(func() {
			for {
				late := stopping.Load()
				got, err := c.Try("POST", "/authenticate", string(body))
				switch {
				case err != nil && late: // the server had answered all others, and has ended
					return
				case err != nil:
					t.Errorf("a request was aborted: %v", err)
					return
				case got.Status == 200:
					done.Add(1)
					select {
					case begun <- struct{}{}:
					default:
					}
				case got.Status == 503 && got.Header.Get("Retry-After") != "":
					var health struct {
						OverallStatus string `json:"overall_status"`
						Message       string
						Timestamp     time.Time
					}
					if got.Decode(t, &health); health.OverallStatus != "unhealthy" || health.Message == "" || health.Timestamp.IsZero() {
						t.Errorf("while shutting down: %s", got.Body)
					}
					rejected.Add(1)
					return
				default:
					t.Errorf("got %d %s", got.Status, got.Body)
					return
				}
			}
		})
	}
	for range 8 {
		<-begun
	}
	stopping.Store(true)
	if err := p.Cmd.Process.Signal(end); err != nil {
		t.Fatal(err)
	}
	wait.Wait()
	if code := p.Code(); code != 0 {
		t.Errorf("exit code %d: %s", code, p.Stderr)
	}
	if rejected.Load() == 0 || done.Load() < 8 {
		t.Errorf("%d requests succeeded, %d were rejected", done.Load(), rejected.Load())
	}
	if log := p.Stderr.String(); !strings.Contains(log, `"msg":"stopped"`) {
		t.Errorf("the log has no line \"stopped\": %s", log)
	}
}
