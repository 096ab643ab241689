package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// idleDelay is the time after which a server has released the memory of its start.
const idleDelay = 5 * time.Second

// createCustomers creates customers in a data directory.
func createCustomers(b *testing.B, dir string, customers int) {
	b.Helper()
	p := start(b, dir)
	admin := p.admin()
	var next atomic.Int64
	var wait sync.WaitGroup
	for range 16 {
		c := p.client(admin.headers...)
		wait.Go(func() {
			for i := next.Add(1); int(i) <= customers; i = next.Add(1) {
				body := fmt.Sprintf(`{"first_name":"Anna","last_name":"Muster %d","email":"anna%d@example.ch"}`, i, i)
				if got, err := c.try("POST", "/v1/customers", body); err != nil || got.status != 201 {
					b.Errorf("%d %s, %v", got.status, got.body, err)
					return
				}
			}
		})
	}
	wait.Wait()
	if code := p.stop(); code != 0 {
		b.Fatalf("exit code %d: %s", code, p.stderr)
	}
}

// freeAddress returns an address on which no program listens at the moment.
func freeAddress(b testing.TB) string {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// waitReady polls /readyz until it returns 200.
func waitReady(b *testing.B, address string, began time.Time) {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	for time.Since(began) < time.Minute {
		response, err := client.Get("http://" + address + "/readyz")
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return
		}
	}
	b.Fatal("not ready within a minute")
}

// residentKiB returns the resident memory of a process.
func residentKiB(b *testing.B, pid int) int { return procNumber(b, pid, "status", "VmRSS:") }

// procNumber returns the number after a label in a file of /proc/PID.
func procNumber(b *testing.B, pid int, file, label string) int {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		b.Skip("needs the /proc of Linux")
	}
	n, err := strconv.Atoi(wordAfter(string(data), label))
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// processorTime returns the processor time of a process, exactly.
func processorTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		b.Skip("needs the /proc of Linux")
	}
	var used time.Duration
	for _, name := range threads {
		var nanoseconds int64
		data, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		if _, err := fmt.Sscan(string(data), &nanoseconds); err != nil {
			b.Fatal(err)
		}
		used += time.Duration(nanoseconds)
	}
	return used
}

// BenchmarkCheck100 measures POST /v1/rbac/check with 100 checks: elapsed time, and processor time of the server.
func BenchmarkCheck100(b *testing.B) {
	p := start(b, filepath.Join(b.TempDir(), "data"))
	admin := p.admin()
	var checks []string
	for i := range 100 {
		id := admin.create(b, "/v1/customers", fmt.Sprintf(`{"first_name":"Anna","last_name":"M","email":"a%d@example.ch"}`, i))
		checks = append(checks, fmt.Sprintf(`{"rec_type":"customers","permission":"update","rec_id":%q}`, id))
	}
	body := `{"checks":[` + strings.Join(checks, ",") + `]}`
	before, calls := processorTime(b, p.cmd.Process.Pid), 0
	for b.Loop() {
		admin.do(b, "POST", "/v1/rbac/check", body, 200)
		calls++
	}
	used := processorTime(b, p.cmd.Process.Pid) - before
	b.ReportMetric(used.Seconds()*1000/float64(calls), "cpu-ms/op")
}

// BenchmarkSignIn measures sign-ins with password hashes of production cost, from as many clients as may wait, and how many
// of them are rejected.
func BenchmarkSignIn(b *testing.B) {
	p := start(b, filepath.Join(b.TempDir(), "data"), "--auth.cooling_off.free_attempts=1000")
	body := fmt.Sprintf(`{"user_id":%q,"password":%q}`, adminEmail, adminPassword)
	var rejected, done atomic.Int64
	began := time.Now()
	b.SetParallelism(4)
	b.RunParallel(func(pb *testing.PB) {
		c := p.client()
		for pb.Next() {
			switch got, err := c.try("POST", "/authenticate", body); {
			case err != nil:
				b.Error(err)
			case got.status == 503:
				rejected.Add(1)
			case got.status != 200:
				b.Errorf("got %d %s", got.status, got.body)
			default:
				done.Add(1)
			}
		}
	})
	b.ReportMetric(float64(done.Load())/time.Since(began).Seconds(), "sign-ins/s")
	b.ReportMetric(float64(rejected.Load()), "turned-away")
}
