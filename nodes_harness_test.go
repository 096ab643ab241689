package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// nodesEnv is the environment of all nodes: the secrets of the tests and one master key.
var nodesEnv = append(slices.Clone(secretsEnv), "KONTOR_SECRET_KEY="+strings.Repeat("c0de", 16))

// startNode runs a node on a PostgreSQL database and waits until it listens.
func startNode(tb testing.TB, address string, args ...string) *process {
	tb.Helper()
	return startWith(tb, append(slices.Clone(nodesEnv), "KONTOR_DATA_URL="+address), append([]string{"--rate_limits.enabled=false"}, args...)...)
}

// nodeRounds returns how often a test repeats what it does to a node: KONTOR_TEST_KILL_ROUNDS, or few.
func nodeRounds(tb testing.TB, few int) int {
	tb.Helper()
	given := os.Getenv("KONTOR_TEST_KILL_ROUNDS")
	if given == "" {
		return few
	}
	rounds, err := strconv.Atoi(given)
	if err != nil || rounds < 1 {
		tb.Fatalf("KONTOR_TEST_KILL_ROUNDS is %q", given)
	}
	return rounds
}

// ready reports whether the node says that it is ready.
func (c *client) ready() bool {
	got, err := c.try("GET", "/readyz", "")
	return err == nil && got.status == 200
}

// load creates customers on one or more nodes, each with an Idempotency-Key of its own.
type load struct {
	tb           testing.TB
	name         string
	mu           sync.Mutex
	all          []write
	acknowledged atomic.Int64
	unknown      atomic.Int64 // requests without an answer that says whether the customer was created
	next         atomic.Int64
	stopped      atomic.Bool
	running      sync.WaitGroup
}

func newLoad(tb testing.TB, name string) *load {
	l := &load{tb: tb, name: name}
	tb.Cleanup(l.stop)
	return l
}

// on starts writers on a node. They continue after failures while the process lives, until the load is stopped. It returns how
// many of their requests were acknowledged.
func (l *load) on(p *process, admin *client, writers int) *atomic.Int64 {
	acknowledged := new(atomic.Int64)
	for range writers {
		c := p.client(admin.headers...)
		l.running.Go(func() {
			for !l.stopped.Load() && p.alive() {
				if l.write(c) {
					acknowledged.Add(1)
					continue
				}
				tick := time.NewTicker(10 * time.Millisecond)
				for !l.stopped.Load() && p.alive() && !c.ready() {
					<-tick.C
				}
				tick.Stop()
			}
		})
	}
	return acknowledged
}

// write sends one request and reports whether it was acknowledged.
func (l *load) write(c *client) bool {
	name := fmt.Sprintf("%s-%d", l.name, l.next.Add(1))
	w := write{key: "key-" + name, body: fmt.Sprintf(`{"first_name":"Anna","last_name":%q,"email":"%s@example.ch"}`, name, name)}
	got, err := c.with("Idempotency-Key", w.key).try("POST", "/v1/customers", w.body)
	switch {
	case err != nil || got.status == 503 || got.status == 504:
		l.unknown.Add(1)
	case got.status != 201:
		l.tb.Errorf("a write got %d %s", got.status, got.body)
	default:
		w.acknowledged = got.body
		l.acknowledged.Add(1)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, w)
	return w.acknowledged != ""
}

// stop ends the writers and waits for their last answers.
func (l *load) stop() {
	l.stopped.Store(true)
	l.running.Wait()
}

// progress waits until a number of further requests was acknowledged.
func progress(tb testing.TB, acknowledged *atomic.Int64, further int64) {
	tb.Helper()
	want := acknowledged.Load() + further
	waitUntil(tb, func() bool { return acknowledged.Load() >= want })
}

// check stops the load and verifies at a node that every request created one customer, once those without an answer were repeated.
// Some of the acknowledged ones are compared with what was acknowledged, with their audit entry and their stored answer.
func (l *load) check(t *testing.T, p *process) {
	t.Helper()
	l.stop()
	admin := p.admin()
	if customers, created := admin.total(t, "/v1/customers?limit=-1"), admin.total(t, "/v1/audit?limit=-1&search.action=customers.create"); customers != created {
		t.Errorf("%d customers, but %d audit entries of their creation", customers, created)
	}
	const compared = 200
	for i, w := range l.all {
		if w.acknowledged == "" || i%(len(l.all)/compared+1) == 0 {
			checkWrite(t, admin, w)
		}
	}
	names := map[string]int{}
	for seen := 0; ; {
		var list page
		admin.do(t, "GET", fmt.Sprintf("/v1/customers?sort=created_at&limit=1000&offset=%d", seen), "", 200).into(t, &list)
		if len(list.Data) == 0 {
			break
		}
		for _, row := range list.Data {
			var customer struct {
				Name string `json:"last_name"`
			}
			if err := json.Unmarshal(row, &customer); err != nil {
				t.Fatal(err)
			}
			names[customer.Name]++
		}
		seen += len(list.Data)
	}
	for _, w := range l.all {
		if n := names[strings.TrimPrefix(w.key, "key-")]; n != 1 {
			t.Errorf("%s: %d customers; acknowledged: %q", w.key, n, w.acknowledged)
		}
	}
	t.Logf("%d requests, %d acknowledged, %d without an answer", len(l.all), l.acknowledged.Load(), l.unknown.Load())
	checkTrail(t, admin)
}

// checkTrail has the node verify the whole audit trail.
func checkTrail(t *testing.T, admin *client) {
	t.Helper()
	var status struct {
		Complete   bool
		AppendOnly bool `json:"append_only"`
	}
	query := "?restart=true"
	waitUntil(t, func() bool {
		admin.do(t, "GET", "/v1/audit/status"+query, "", 200).into(t, &status)
		query = ""
		return status.Complete
	})
	if !status.AppendOnly {
		t.Error("the audit trail is not protected")
	}
}
