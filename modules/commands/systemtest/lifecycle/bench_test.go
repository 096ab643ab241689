package lifecycle_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kontor/modules/commands/systemtest"
)

// idleDelay is the time after which a server has released the memory of its start.
const idleDelay = 5 * time.Second

// createCustomers creates customers in a data directory.
func createCustomers(b *testing.B, dir string, customers int) {
	b.Helper()
	p := systemtest.Start(b, dir)
	admin := p.Admin()
	var next atomic.Int64
	var wait sync.WaitGroup
	for range 16 {
		c := p.Client(admin.Headers...)
		wait.Go(func() {
			for i := next.Add(1); int(i) <= customers; i = next.Add(1) {
				body := fmt.Sprintf(`{"first_name":"Anna","last_name":"Muster %d","email":"anna%d@example.ch"}`, i, i)
				if got, err := c.Try("POST", "/v1/customers", body); err != nil || got.Status != 201 {
					b.Errorf("%d %s, %v", got.Status, got.Body, err)
					return
				}
			}
		})
	}
	wait.Wait()
	if code := p.Stop(); code != 0 {
		b.Fatalf("exit code %d: %s", code, p.Stderr)
	}
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

// BenchmarkCheck100 measures POST /v1/rbac/check with 100 checks: elapsed time, and processor time of the server.
func BenchmarkCheck100(b *testing.B) {
	p := systemtest.Start(b, filepath.Join(b.TempDir(), "data"))
	admin := p.Admin()
	var checks []string
	for i := range 100 {
		id := admin.Create(b, "/v1/customers", fmt.Sprintf(`{"first_name":"Anna","last_name":"M","email":"a%d@example.ch"}`, i))
		checks = append(checks, fmt.Sprintf(`{"rec_type":"customers","permission":"update","rec_id":%q}`, id))
	}
	body := `{"checks":[` + strings.Join(checks, ",") + `]}`
	before, calls := systemtest.ProcessorTime(b, p.Cmd.Process.Pid), 0
	for b.Loop() {
		admin.Do(b, "POST", "/v1/rbac/check", body, 200)
		calls++
	}
	used := systemtest.ProcessorTime(b, p.Cmd.Process.Pid) - before
	b.ReportMetric(used.Seconds()*1000/float64(calls), "cpu-ms/op")
}

// BenchmarkSignIn measures sign-ins with password hashes of production cost, from as many clients as may wait, and how many
// of them are rejected.
func BenchmarkSignIn(b *testing.B) {
	p := systemtest.Start(b, filepath.Join(b.TempDir(), "data"), "--auth.cooling_off.free_attempts=1000")
	body := fmt.Sprintf(`{"user_id":%q,"password":%q}`, systemtest.AdminEmail, systemtest.AdminPassword)
	var rejected, done atomic.Int64
	began := time.Now()
	b.SetParallelism(4)
	b.RunParallel(func(pb *testing.PB) {
		c := p.Client()
		for pb.Next() {
			switch got, err := c.Try("POST", "/authenticate", body); {
			case err != nil:
				b.Error(err)
			case got.Status == 503:
				rejected.Add(1)
			case got.Status != 200:
				b.Errorf("got %d %s", got.Status, got.Body)
			default:
				done.Add(1)
			}
		}
	})
	b.ReportMetric(float64(done.Load())/time.Since(began).Seconds(), "sign-ins/s")
	b.ReportMetric(float64(rejected.Load()), "turned-away")
}
