package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// write is a request to create a customer, with its outcome.
type write struct {
	key, body    string
	acknowledged string // the response; empty if there was none
}

// writeUntilDead creates customers from many connections until the server has ended, and returns every request. It calls
// enough once, when that many were acknowledged.
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
					return // the server stops
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

// killRounds returns how often the server is killed: KONTOR_TEST_KILL_ROUNDS, or a few times.
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

// The ways in which a server under load is killed.
var kills = []func(t *testing.T, p *process){
	func(_ *testing.T, p *process) { p.kill() },
	func(_ *testing.T, p *process) { // during a shutdown
		_ = p.cmd.Process.Signal(os.Interrupt)
		p.kill()
	},
	func(t *testing.T, p *process) { // and again during a start
		p.kill()
		again := command(t, givenSecrets, "serve", "--server.listen=127.0.0.1:0", "--data.dir", p.dir())
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
		_ = again.Wait() // the process was killed
	},
}

// TestKill_LosesNoAcknowledgedWrite kills the server under load several times. Then it looks for every acknowledged customer
// with its audit entry and stored response. The log must not grow from start to start.
func TestKill_LosesNoAcknowledgedWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var all []write
	rounds := killRounds(t)
	enough := max(600/rounds, 100)
	for round := range rounds {
		p := start(t, dir)
		kill := func() { kills[round%len(kills)](t, p) }
		all = append(all, writeUntilDead(t, p, p.admin(), round, enough, kill)...)
		p.kill() // ends the process unless the shutdown has completed
		if round < len(kills) || round%20 == 0 {
			succeeds(t, run(t, nil, "check", "--data.dir", dir))
		}
		if log, err := os.Stat(filepath.Join(dir, "kontor.db-wal")); err == nil && log.Size() > 80<<20 {
			t.Errorf("after %d kills the log has %d bytes", round+1, log.Size())
		}
	}
	p := start(t, dir)
	admin := p.admin()
	if customers, created := admin.total(t, "/v1/customers?limit=-1"), admin.total(t, "/v1/audit?limit=-1&search.action=customers.create"); customers != created {
		t.Errorf("%d customers and %d audit entries of their creation: one was written without the other", customers, created)
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
	// Each request was sent twice by now, and unacknowledged ones were completed. So each took effect exactly once.
	if got := admin.total(t, "/v1/customers?limit=-1"); got != len(all) {
		t.Errorf("%d customers for %d requests", got, len(all))
	}
	if got := admin.total(t, "/v1/audit?limit=-1&search.action=customers.create"); got != len(all) {
		t.Errorf("%d audit entries for %d requests", got, len(all))
	}
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if said := succeeds(t, run(t, nil, "check", "--data.dir", dir)); !strings.Contains(said, "is intact") {
		t.Errorf("check says %q", said)
	}
}

// checkWrite sends the request again with its key, and checks the record and its audit entry.
func checkWrite(t *testing.T, admin *client, w write) {
	t.Helper()
	again := admin.with("Idempotency-Key", w.key).do(t, "POST", "/v1/customers", w.body, 201)
	if w.acknowledged == "" {
		return
	}
	if again.body != w.acknowledged || again.header.Get("Idempotency-Replayed") != "true" {
		t.Fatalf("the replay of an acknowledged request answered %s, the request %s", again.body, w.acknowledged)
	}
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(w.acknowledged), &made); err != nil {
		t.Fatal(err)
	}
	if got := admin.do(t, "GET", "/v1/customers/"+made.ID, "", 200); got.body != w.acknowledged {
		t.Fatalf("acknowledged %s, after the crash %s", w.acknowledged, got.body)
	}
	if n := admin.total(t, "/v1/audit?search.action=customers.create&search.rec_id="+made.ID); n != 1 {
		t.Fatalf("customer %s has %d audit entries", made.ID, n)
	}
}
