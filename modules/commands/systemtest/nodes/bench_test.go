//go:build linux

package nodes_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"kontor/modules/commands/systemtest"
	"kontor/server/servertest"
	"kontor/store/postgres/postgrestest"
)

// BenchmarkNodes compares nodes on PostgreSQL with SQLite and with a bare Fiber handler, in one run on one machine, and prints a
// table. PostgreSQL runs with fsync on. The rows are measured in turn, several times; the table shows the medians. A rate per core
// is the rate divided by the processor time of Kontor's own processes, without that of PostgreSQL and of the driver.
func BenchmarkNodes(b *testing.B) {
	for b.Loop() {
		t := &table{floor: servertest.BareFiber(b)}
		server := postgrestest.Server(b, postgrestest.Options{Durable: true})
		sqlite := []*systemtest.Process{systemtest.Start(b, filepath.Join(b.TempDir(), "data"))}
		nodes := launchNodes(b, server.URL("postgres"), 4)
		t.measure(b, "GET by id, SQLite", gets(b, sqlite))
		t.measure(b, "GET by id, 1 node", gets(b, nodes[:1]))
		t.measure(b, "create, 64 callers, SQLite", creates(b, sqlite, 64))
		for _, n := range []int{1, 2, 4} {
			t.measure(b, fmt.Sprintf("create, 64 callers, nodes: %d", n), creates(b, nodes[:n], 64))
		}
		t.measure(b, "create, 1 caller, 1 node", creates(b, nodes[:1], 1))
		t.logouts(b, "logout, 2 nodes", nodes[:2])
		for _, p := range nodes {
			p.Stop()
		}
		proxy := postgrestest.NewProxy(b, server.Addr())
		proxy.Delay(time.Millisecond)
		far := launchNodes(b, proxy.Through(server.URL("postgres")), 2)
		t.measure(b, "GET by id, 1 node, 2 ms away", gets(b, far[:1]))
		t.measure(b, "create, 64 callers, 1 node, 2 ms away", creates(b, far[:1], 64))
		t.measure(b, "create, 64 callers, 2 nodes, 2 ms away", creates(b, far, 64))
		t.measure(b, "create, 1 caller, 1 node, 2 ms away", creates(b, far[:1], 1))
		t.logouts(b, "logout, 2 nodes, 2 ms away", far)
		for _, p := range append(far, sqlite...) {
			p.Stop()
		}
		fmt.Println(t) // b.Log shortens long texts
	}
}

func launchNodes(b *testing.B, address string, n int) (nodes []*systemtest.Process) {
	b.Helper()
	for range n {
		nodes = append(nodes, startNode(b, address))
	}
	return nodes
}

// work is what a row of the table measures.
type work struct {
	nodes   []*systemtest.Process
	callers int
	n, want int // requests of a round, and the status of their answers
	request func(i int) []byte
}

// gets reads customers by their ids.
func gets(b *testing.B, nodes []*systemtest.Process) work {
	b.Helper()
	admin := nodes[0].Admin()
	requests := make([][]byte, 100)
	for i := range requests {
		id := admin.Create(b, "/v1/customers", fmt.Sprintf(`{"first_name":"Anna","last_name":"Muster","email":"get%d@example.ch"}`, i))
		requests[i] = servertest.Request("GET", "/v1/customers/"+id, "", admin.Headers...)
	}
	return work{nodes, 64, 20_000, 200, func(i int) []byte { return requests[i%len(requests)] }}
}

// creates creates customers, each with its audit entry.
func creates(b *testing.B, nodes []*systemtest.Process, callers int) work {
	b.Helper()
	headers := nodes[0].Admin().Headers
	return work{nodes, callers, 60 * callers, 201, func(i int) []byte {
		return servertest.Request("POST", "/v1/customers", fmt.Sprintf(`{"first_name":"Anna","last_name":"Muster %d","email":"anna%d@example.ch"}`, i, i), headers...)
	}}
}

// table collects the rows.
type table struct {
	floor string // address of the bare Fiber handler
	rows  []row
	notes []string
}

type row struct {
	name                string
	rate, perCore, bare float64 // requests per second, and the ratio to the bare handler
}

// measure adds a row with the medians of three rounds.
func (t *table) measure(b *testing.B, name string, p work) {
	b.Helper()
	var addresses []string
	for i := range p.callers {
		addresses = append(addresses, strings.TrimPrefix(p.nodes[i%len(p.nodes)].URL, "http://"))
	}
	hello := servertest.Request("GET", "/hello", "")
	var rates, perCore, bare []float64
	servertest.LoadOver(b, addresses, p.n/4, p.want, p.request) // to warm up
	for range 3 {
		floor := servertest.Load(b, t.floor, 10_000, 200, func(int) []byte { return hello })
		before := used(b, p.nodes)
		rate := servertest.LoadOver(b, addresses, p.n, p.want, p.request)
		cores := (used(b, p.nodes) - before).Seconds() / (float64(p.n) / rate)
		rates, perCore, bare = append(rates, rate), append(perCore, rate/cores), append(bare, rate/floor)
	}
	t.rows = append(t.rows, row{name, servertest.Median(rates), servertest.Median(perCore), servertest.Median(bare)})
}

// used returns the processor time of processes.
func used(b *testing.B, nodes []*systemtest.Process) (sum time.Duration) {
	for _, p := range nodes {
		sum += systemtest.ProcessorTime(b, p.Cmd.Process.Pid)
	}
	return sum
}

// logouts ends 200 sessions on one node and sends 50 requests of each to the other node as soon as that was answered.
func (t *table) logouts(b *testing.B, name string, nodes []*systemtest.Process) {
	b.Helper()
	const sessions, next = 200, 50
	var took []time.Duration
	accepted := 0
	other := nodes[1].Client()
	for range sessions {
		u := nodes[0].Admin()
		u.Using(other).Do(b, "GET", "/v1/users/me", "", 200)
		began := time.Now()
		u.Do(b, "POST", "/v1/logout", "", 200)
		took = append(took, time.Since(began))
		for range next {
			if got, err := u.Using(other).Try("GET", "/v1/users/me", ""); err != nil || got.Status != 401 {
				accepted++
			}
		}
	}
	slices.Sort(took)
	t.notes = append(t.notes, fmt.Sprintf("%s: p50 %v, p99 %v; %d of %d next requests on the other node were not refused", name,
		took[len(took)/2].Round(10*time.Microsecond), took[len(took)*99/100].Round(10*time.Microsecond), accepted, sessions*next))
}

func (t *table) String() string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(&out)
	fmt.Fprintln(w, "path\treq/s\tof bare Fiber\treq/s per core of Kontor\tof SQLite\tper core\t")
	for _, r := range t.rows {
		base := t.rows[0]
		if strings.HasPrefix(r.name, "create") {
			base = t.row("create, 64 callers, SQLite")
		}
		fmt.Fprintf(w, "%s\t%.0f\t%.3f\t%.0f\t%.2f\t%.2f\t\n", r.name, r.rate, r.bare, r.perCore, r.rate/base.rate, r.perCore/base.perCore)
	}
	w.Flush()
	for _, note := range t.notes {
		fmt.Fprintln(&out, note)
	}
	return out.String()
}

func (t *table) row(name string) row {
	for _, r := range t.rows {
		if r.name == name {
			return r
		}
	}
	return row{}
}
