package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// write is a request to create a customer, with its response.
type write struct {
	key, body    string
	acknowledged string // the body of the response; empty without one
}

// writeUntilDead creates customers over many connections until the server has ended, and returns all requests. It calls
// kill once, after enough requests were acknowledged.
func writeUntilDead(tb testing.TB, p *process, admin *client, round, enough int, kill func()) []write {
	tb.Helper()
	const writers = 32
	var all []write
	var mu sync.Mutex
	var acknowledged atomic.Int64
	var wait sync.WaitGroup
	for w := range writers {
		connection := p.client(admin.headers...)
		wait.Go(func() {
			for n := 0; ; n++ {
				name := fmt.Sprintf("r%d-w%d-n%d", round, w, n)
				sent := write{key: "key-" + name, body: fmt.Sprintf(`{"first_name":"Anna <& Co>","last_name":%q,"email":"%s@example.ch","metadata":{"round":%d}}`, name, name, round)}
				got, err := connection.with("Idempotency-Key", sent.key).try("POST", "/v1/customers", sent.body)
				if err == nil && got.status == 503 {
					return // the server is shutting down
				}
				if err == nil && got.status != 201 {
					tb.Errorf("got %d %s", got.status, got.body)
					return
				}
				if err == nil {
					sent.acknowledged = got.body
				}
				mu.Lock()
				all = append(all, sent)
				mu.Unlock()
				if err != nil {
					return
				}
				if int(acknowledged.Add(1)) == enough {
					kill()
				}
			}
		})
	}
	wait.Wait()
	return all
}

// killRounds returns how often to kill the server: KONTOR_TEST_KILL_ROUNDS, or 3.
func killRounds(t *testing.T) int {
	t.Helper()
	given := os.Getenv("KONTOR_TEST_KILL_ROUNDS")
	if given == "" {
		return 3
	}
	rounds, err := strconv.Atoi(given)
	if err != nil || rounds < 3 {
		t.Fatalf("KONTOR_TEST_KILL_ROUNDS is %q, want 3 or more", given)
	}
	return rounds
}

// kills are the ways to kill a server under load.
var kills = []func(t *testing.T, p *process){
	func(_ *testing.T, p *process) { p.kill() },
	func(_ *testing.T, p *process) { // during the shutdown
		_ = p.cmd.Process.Signal(os.Interrupt)
		p.kill()
	},
	func(t *testing.T, p *process) { // and again during the next start
		p.kill()
		again := command(t, secretsEnv, "serve", "--server.listen=127.0.0.1:0", "--data.dir", p.dir())
		if err := again.Start(); err != nil {
			t.Error(err)
			return
		}
		for opened := false; !opened; { // until the database is open
			files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", again.Process.Pid))
			opened = err != nil
			for _, f := range files {
				name, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", again.Process.Pid, f.Name()))
				opened = opened || strings.HasSuffix(name, "kontor.db")
			}
		}
		_ = again.Process.Kill()
		_ = again.Wait() // it was killed
	},
}

// TestKill_LosesNoAcknowledgedWrite kills the server under load several times. Every acknowledged customer must exist, with
// its audit entry and its stored answer. The write-ahead log must not grow from start to start.
func TestKill_LosesNoAcknowledgedWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var all []write
	rounds := killRounds(t)
	enough := max(600/rounds, 100)
	for round := range rounds {
		p := start(t, dir)
		kill := func() { kills[round%len(kills)](t, p) }
		all = append(all, writeUntilDead(t, p, p.admin(), round, enough, kill)...)
		p.kill() // in case the server has not been killed
		if round < len(kills) || round%20 == 0 {
			expectSuccess(t, run(t, nil, "check", "--data.dir", dir))
		}
		if log, err := os.Stat(filepath.Join(dir, "kontor.db-wal")); err == nil && log.Size() > 80<<20 {
			t.Errorf("after %d kills the log has %d bytes", round+1, log.Size())
		}
	}
	p := start(t, dir)
	admin := p.admin()
	if customers, created := admin.total(t, "/v1/customers?limit=-1"), admin.total(t, "/v1/audit?limit=-1&search.action=customers.create"); customers != created {
		t.Errorf("%d customers, but %d audit entries of their creation", customers, created)
	}
	acknowledged := 0
	for _, w := range all {
		if w.acknowledged != "" {
			acknowledged++
		}
		checkWrite(t, admin, w)
	}
	if acknowledged < 600 {
		t.Fatalf("only %d writes were acknowledged", acknowledged)
	}
	// checkWrite has sent each request again, which creates the customers that were lost. Each one must exist once.
	if got := admin.total(t, "/v1/customers?limit=-1"); got != len(all) {
		t.Errorf("%d customers for %d requests", got, len(all))
	}
	if got := admin.total(t, "/v1/audit?limit=-1&search.action=customers.create"); got != len(all) {
		t.Errorf("%d audit entries for %d requests", got, len(all))
	}
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if out := expectSuccess(t, run(t, nil, "check", "--data.dir", dir)); !strings.Contains(out, "is intact") {
		t.Errorf("check printed %q", out)
	}
}

// checkWrite sends a request again, with its idempotency key, and checks the record and its audit entry.
func checkWrite(t *testing.T, admin *client, w write) {
	t.Helper()
	again := admin.with("Idempotency-Key", w.key).do(t, "POST", "/v1/customers", w.body, 201)
	if w.acknowledged == "" {
		return
	}
	if again.body != w.acknowledged || again.header.Get("Idempotency-Replayed") != "true" {
		t.Fatalf("the replay returned %s, the original request %s", again.body, w.acknowledged)
	}
	id := idOf(t, w.acknowledged)
	if got := admin.do(t, "GET", "/v1/customers/"+id, "", 200); got.body != w.acknowledged {
		t.Fatalf("acknowledged %s, after the crash %s", w.acknowledged, got.body)
	}
	if n := admin.total(t, "/v1/audit?search.action=customers.create&search.rec_id="+id); n != 1 {
		t.Fatalf("customer %s has %d audit entries", id, n)
	}
}
