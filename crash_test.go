package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// write is a request to create a customer and what came of it.
type write struct {
	key, body    string
	acknowledged string // the answer; empty when none came
}

// writeUntilDead creates customers from many connections until the server is gone, and tells of every request. enough
// is called once, when that many were acknowledged.
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

// TestKill_LosesNoAcknowledgedWrite kills the server in the midst of a load, twice, and then looks for every customer
// that somebody was told of, with the audit entry and the answer that belong to him.
func TestKill_LosesNoAcknowledgedWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var all []write
	for round := range 2 {
		p := start(t, dir)
		all = append(all, writeUntilDead(t, p, p.admin(), round, 300, p.kill)...)
		if code := p.code(); code == 0 {
			t.Error("a killed server ended with 0")
		}
		succeeds(t, run(t, nil, "check", "--data.dir", dir))
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
	// Each request was sent twice by now, and those that nobody had heard of were made good: every one happened once.
	if got := admin.total(t, "/v1/customers?limit=-1"); got != len(all) {
		t.Errorf("%d customers for %d requests", got, len(all))
	}
	if got := admin.total(t, "/v1/audit?limit=-1&search.action=customers.create"); got != len(all) {
		t.Errorf("%d audit entries for %d requests", got, len(all))
	}
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if said := succeeds(t, run(t, nil, "check", "--data.dir", dir)); !strings.Contains(said, "is whole") {
		t.Errorf("check says %q", said)
	}
}

// checkWrite sends the request again, with its key, and looks at the record and its audit entry.
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
