package lifecycle_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kontor/modules/commands/systemtest"
	"kontor/store/storetest"
	"kontor/store/testenv"
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

// TestStop_LetsRequestsFinish stops a server during a request. It must answer the request, and later ones with 503 while it listens.
func TestStop_LetsRequestsFinish(t *testing.T) {
	for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(end.String(), func(t *testing.T) { stopDuringARequest(t, end) })
	}
}

func stopDuringARequest(t *testing.T, end syscall.Signal) {
	t.Helper()
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, end) // under nohup, the server would ignore the signal as these tests do
	defer signal.Stop(caught)
	p := systemtest.Start(t, filepath.Join(t.TempDir(), "data"))
	admin := p.Admin()
	answer, release := stallWrite(t, p, admin)
	p.Signal(end)
	testenv.Wait(t, "the listener to be closed", func() bool {
		got, err := p.Client().Try("GET", "/v1/users/me", "")
		if err == nil && got.Status != 401 {
			expectShuttingDown(t, got)
		}
		return err != nil
	})
	if len(answer) > 0 || !p.Alive() {
		t.Errorf("the server did not wait for a request: %s", p.Stderr)
	}
	release()
	if err := testenv.Receive(t, "the answer to the write", answer); err != nil {
		t.Errorf("a request was aborted: %v", err)
	}
	if code := p.Code(); code != 0 {
		t.Errorf("exit code %d: %s", code, p.Stderr)
	}
	if log := p.Stderr.String(); !strings.Contains(log, `"msg":"stopped"`) {
		t.Errorf("the log has no line \"stopped\": %s", log)
	}
}

// stallWrite sends a write, and returns when it is under way, and cannot be answered before release is called: its customer can be read
// while it waits for its sync. It begins again if a background job has the sync before.
func stallWrite(t *testing.T, p *systemtest.Process, admin *systemtest.Client) (answer <-chan error, release func()) {
	t.Helper()
	scraper := p.Scraper()
	for {
		before, answered := admin.Total(t, "/v1/customers?limit=-1"), make(chan error, 1)
		release = p.StallSyncs()
		go func() {
			got, err := p.Client(admin.Headers...).Try("POST", "/v1/customers", `{"first_name":"Anna","last_name":"Muster","email":"anna@example.ch"}`)
			if err == nil && got.Status != 201 {
				err = fmt.Errorf("%d %s", got.Status, got.Body)
			}
			answered <- err
		}()
		isUnderWay := false
		testenv.Wait(t, "the write to be under way", func() bool {
			isStalled := strings.Contains(scraper.Do(t, "GET", "/metrics", "", 200).Body, "kontor_store_stalled 1")
			isUnderWay = admin.Total(t, "/v1/customers?limit=-1") > before
			return isUnderWay || isStalled
		})
		if isUnderWay {
			return answered, release
		}
		release()
		if err := testenv.Receive(t, "the answer to the write", answered); err != nil {
			t.Fatal(err)
		}
	}
}

// expectShuttingDown checks the answer to a request that comes too late.
func expectShuttingDown(t *testing.T, got systemtest.Answer) {
	t.Helper()
	var health struct {
		OverallStatus string `json:"overall_status"`
		Message       string
		Timestamp     time.Time
	}
	got.Decode(t, &health)
	if got.Status != 503 || got.Header.Get("Retry-After") == "" || health.OverallStatus != "unhealthy" || health.Message == "" || health.Timestamp.IsZero() {
		t.Errorf("while shutting down: %d %s", got.Status, got.Body)
	}
}
