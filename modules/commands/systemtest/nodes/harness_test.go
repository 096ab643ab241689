package nodes_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

// nodesEnv is the environment of all nodes: the secrets of the tests and one master key.
var nodesEnv = append(slices.Clone(systemtest.SecretsEnv), "KONTOR_SECRET_KEY="+strings.Repeat("c0de", 16))

// startNode runs a node on a PostgreSQL database and waits until it listens.
func startNode(tb testing.TB, address string, args ...string) *systemtest.Process {
	tb.Helper()
	return systemtest.StartWith(tb, append(slices.Clone(nodesEnv), "KONTOR_DATA_URL="+address), append([]string{"--rate_limits.enabled=false"}, args...)...)
}

// nodeRounds returns how often a test repeats what it does to a node.
func nodeRounds(full int) int { return testenv.Rounds(0, full, 200) }

// load creates customers on one or more nodes, each with an Idempotency-Key of its own.
type load struct {
	tb           testing.TB
	name         string
	mu           sync.Mutex
	all          []systemtest.Write
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

// pace is the time from one request of a writer to its next one. Without it the writers take both cores while a test waits for leases.
const pace = 50 * time.Millisecond

// on starts writers on a node. They continue after failures while the process lives, until the load is stopped. It returns how
// many of their requests were acknowledged.
func (l *load) on(p *systemtest.Process, admin *systemtest.Client, writers int) *atomic.Int64 {
	acknowledged := new(atomic.Int64)
	for range writers {
		c := p.Client(admin.Headers...)
		l.running.Go(func() {
			tick := time.NewTicker(pace)
			defer tick.Stop()
			for ; !l.stopped.Load() && p.Alive(); <-tick.C {
				if l.write(c) {
					acknowledged.Add(1)
					continue
				}
				for !l.stopped.Load() && p.Alive() && !c.Ready() {
					<-tick.C
				}
			}
		})
	}
	return acknowledged
}

// write sends one request and reports whether it was acknowledged.
func (l *load) write(c *systemtest.Client) bool {
	name := fmt.Sprintf("%s-%d", l.name, l.next.Add(1))
	w := systemtest.Write{Key: "key-" + name, Body: fmt.Sprintf(`{"first_name":"Anna","last_name":%q,"email":"%s@example.ch"}`, name, name)}
	got, err := c.With("Idempotency-Key", w.Key).Try("POST", "/v1/customers", w.Body)
	switch {
	case err != nil || got.Status == 503 || got.Status == 504:
		l.unknown.Add(1)
	case got.Status != 201:
		l.tb.Errorf("a write got %d %s", got.Status, got.Body)
	default:
		w.Acknowledged = got.Body
		l.acknowledged.Add(1)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, w)
	return w.Acknowledged != ""
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
	testenv.Wait(tb, "acknowledged writes", func() bool { return acknowledged.Load() >= want })
}

// check stops the load and verifies at a node that every request created one customer, once those without an answer were repeated.
// Some of the acknowledged ones are compared with what was acknowledged, with their audit entry and their stored answer.
func (l *load) check(t *testing.T, p *systemtest.Process) {
	t.Helper()
	l.stop()
	admin := p.Admin()
	if customers, created := admin.Total(t, "/v1/customers?limit=-1"), admin.Total(t, "/v1/audit?limit=-1&search.action=customers.create"); customers != created {
		t.Errorf("%d customers, but %d audit entries of their creation", customers, created)
	}
	const compared = 200
	for i, w := range l.all {
		if w.Acknowledged == "" || i%(len(l.all)/compared+1) == 0 {
			systemtest.CheckWrite(t, admin, w)
		}
	}
	names := map[string]int{}
	for seen := 0; ; {
		var list systemtest.Page
		admin.Do(t, "GET", fmt.Sprintf("/v1/customers?sort=created_at&limit=1000&offset=%d", seen), "", 200).Decode(t, &list)
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
		if n := names[strings.TrimPrefix(w.Key, "key-")]; n != 1 {
			t.Errorf("%s: %d customers; acknowledged: %q", w.Key, n, w.Acknowledged)
		}
	}
	t.Logf("%d requests, %d acknowledged, %d without an answer", len(l.all), l.acknowledged.Load(), l.unknown.Load())
	checkTrail(t, admin)
}

// checkTrail has the node verify the whole audit trail.
func checkTrail(t *testing.T, admin *systemtest.Client) {
	t.Helper()
	var status struct {
		Complete   bool
		AppendOnly bool `json:"append_only"`
	}
	query := "?restart=true"
	testenv.Wait(t, "the verification of the audit trail to end", func() bool {
		admin.Do(t, "GET", "/v1/audit/status"+query, "", 200).Decode(t, &status)
		query = ""
		return status.Complete
	})
	if !status.AppendOnly {
		t.Error("the audit trail is not protected")
	}
}
