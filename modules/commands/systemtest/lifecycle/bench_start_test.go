package lifecycle_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

// BenchmarkColdStart measures the time from the start of the process to the first 200 of /readyz, on an existing database that was
// closed in order, and on one whose process was killed. It reports elapsed time and processor time, which depends less on the load
// of the machine; the quickest start depends least on it.
func BenchmarkColdStart(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "data")
	createCustomers(b, dir, 1000)
	for name, end := range map[string]os.Signal{"closed": syscall.SIGTERM, "killed": syscall.SIGKILL} {
		b.Run(name, func(b *testing.B) { coldStarts(b, dir, end) })
	}
}

func coldStarts(b *testing.B, dir string, end os.Signal) {
	address := testenv.FreeAddress(b)
	quickest, least := time.Hour, time.Hour
	for range 2 { // the first start finds the database of another benchmark
		startOnce(b, dir, address, end)
	}
	for b.Loop() {
		took, used := startOnce(b, dir, address, end)
		quickest, least = min(quickest, took), min(least, used)
	}
	b.ReportMetric(quickest.Seconds()*1000, "quickest-ms")
	b.ReportMetric(least.Seconds()*1000, "least-cpu-ms")
}

// startOnce starts a server until it is ready, and ends it.
func startOnce(b *testing.B, dir, address string, end os.Signal) (took, used time.Duration) {
	b.Helper()
	cmd := systemtest.Command(b, nil, "serve", "--server.listen="+address, "--data.dir", dir)
	began := time.Now()
	if err := testenv.Start(cmd); err != nil {
		b.Fatal(err)
	}
	waitReady(b, address, began)
	took = time.Since(began)
	used = systemtest.ProcessorTime(b, cmd.Process.Pid)
	if err := cmd.Process.Signal(end); err != nil {
		b.Fatal(err)
	}
	_ = cmd.Wait() // a killed process has failed
	return took, used
}

// BenchmarkIdleMemory measures the memory of an idle server on an existing database.
func BenchmarkIdleMemory(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "data")
	createCustomers(b, dir, 1000)
	memory := 0
	for b.Loop() {
		p := systemtest.Start(b, dir)
		p.Client().Do(b, "GET", "/readyz", "", 200)
		time.Sleep(idleDelay)
		memory = systemtest.ResidentKiB(b, p.Cmd.Process.Pid)
		p.Kill()
	}
	b.ReportMetric(float64(memory)/1024, "RSS-MiB")
}

// BenchmarkLoneCreate measures durable creates of one client on one connection, in processor time of the server, and the same of
// 32 clients whose creates are committed in groups.
func BenchmarkLoneCreate(b *testing.B) {
	for _, clients := range []int{1, 32} {
		b.Run(fmt.Sprint(clients), func(b *testing.B) { loneCreates(b, clients) })
	}
}

func loneCreates(b *testing.B, clients int) {
	p := systemtest.Start(b, filepath.Join(b.TempDir(), "data"))
	admin := p.Admin()
	const each = 500 // creates in one iteration
	before, n := systemtest.ProcessorTime(b, p.Cmd.Process.Pid), 0
	for b.Loop() {
		var wait sync.WaitGroup
		for i := range clients {
			c := p.Client(admin.Headers...)
			wait.Go(func() {
				for j := range each / clients {
					body := fmt.Sprintf(`{"first_name":"Anna","last_name":"M","email":"a%d-%d-%d@example.ch"}`, n, i, j)
					if got, err := c.Try("POST", "/v1/customers", body); err != nil || got.Status != 201 {
						b.Errorf("%d %s, %v", got.Status, got.Body, err)
						return
					}
				}
			})
		}
		wait.Wait()
		n += each / clients * clients
	}
	used := systemtest.ProcessorTime(b, p.Cmd.Process.Pid) - before
	b.ReportMetric(float64(used.Microseconds())/float64(n), "cpu-us/create")
}

// BenchmarkSignInFlood measures how long reads of others take while 200 people sign in at once, each from a network of their own,
// beside the time that they take on the quiet server.
func BenchmarkSignInFlood(b *testing.B) {
	p := systemtest.Start(b, filepath.Join(b.TempDir(), "data"), "--auth.cooling_off.free_attempts=1000", "--auth.sessions_max=1000",
		"--server.trusted_proxies=127.0.0.0/8")
	admin := p.Admin()
	id := admin.Create(b, "/v1/customers", `{"first_name":"Anna","last_name":"M","email":"a@example.ch"}`)
	read := func(count int, until func() bool) (p95 time.Duration) {
		var times []time.Duration
		for i := 0; i < count || until != nil && !until(); i++ {
			began := time.Now()
			admin.Do(b, "GET", "/v1/customers/"+id, "", 200)
			times = append(times, time.Since(began))
			time.Sleep(time.Millisecond)
		}
		slices.Sort(times)
		return times[len(times)*95/100]
	}
	read(200, nil)
	body := fmt.Sprintf(`{"user_id":%q,"password":%q}`, systemtest.AdminEmail, systemtest.AdminPassword)
	quiet, flooded := time.Hour, time.Hour
	var done atomic.Int64
	flooding := 0
	for b.Loop() {
		quiet = min(quiet, read(500, nil))
		var flood sync.WaitGroup
		flooding++
		for i := range 200 {
			c := p.Client("X-Forwarded-For", fmt.Sprintf("10.%d.%d.1", flooding%250, i))
			flood.Go(func() {
				// The queue for hashes has an end: some are rejected.
				if got, err := c.Try("POST", "/authenticate", body); err == nil && got.Status == 200 {
					done.Add(1)
				}
			})
		}
		over := make(chan struct{})
		go func() { flood.Wait(); close(over) }()
		flooded = min(flooded, read(0, func() bool {
			select {
			case <-over:
				return true
			default:
				return false
			}
		}))
	}
	b.ReportMetric(float64(quiet.Microseconds())/1000, "quiet-p95-ms")
	b.ReportMetric(float64(flooded.Microseconds())/1000, "flood-p95-ms")
	b.ReportMetric(float64(flooded)/float64(quiet), "ratio")
	b.ReportMetric(float64(done.Load())/float64(flooding), "signed-in")
}
