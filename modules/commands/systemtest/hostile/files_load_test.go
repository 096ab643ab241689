package hostile_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kontor/modules/commands/systemtest"
)

// hostileLoad returns how many hostile files to send: 12, or KONTOR_HOSTILE_FILES. Times are measured only when the variable
// is set, because that needs an idle machine.
func hostileLoad() (count int, measured bool) {
	if n, err := strconv.Atoi(os.Getenv("KONTOR_HOSTILE_FILES")); err == nil && n > 0 {
		return n, true
	}
	return 12, false
}

// TestHostileFiles_DoNotDisturbOthers sends hostile files as six users while another user reads. No response may be an
// internal error, other users must be served, and no worker may remain at the end.
func TestHostileFiles_DoNotDisturbOthers(t *testing.T) {
	const clients = 6
	count, measured := hostileLoad()
	dir := newDataDirWithEngine(t)
	systemtest.Start(t, dir).Stop() // the first start creates the administrator
	names := advisors(t, dir, clients)
	p := systemtest.Start(t, dir)
	admin := p.Admin()
	admin.Do(t, "POST", readBill, upload(sample(t, goodPDF)), 200)
	quiet := figures{}
	if measured {
		quiet = measure(p, admin, nil)
	}

	var next atomic.Int64
	var mutex sync.Mutex
	answers := map[string]int{}
	var group sync.WaitGroup
	for _, name := range names {
		attacker := p.SignIn(name, systemtest.AdminPassword)
		group.Go(func() {
			for n := int(next.Add(1) - 1); n < count; n = int(next.Add(1) - 1) {
				kind, file := hostileFile(n)
				got, err := attacker.Try("POST", readBill, upload(file))
				switch {
				case err != nil:
					t.Errorf("%s (%d): %v", kind, n, err)
				case got.Status == 400 && got.Code() == "invalid_input":
				case got.Status == 503 && got.Header.Get("Retry-After") != "":
				default:
					t.Errorf("%s (%d): got %d %.200s", kind, n, got.Status, got.Body)
				}
				mutex.Lock()
				answers[fmt.Sprint(got.Status)]++
				mutex.Unlock()
			}
		})
	}
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	busy := measure(p, admin, done)
	t.Logf("%d files: %v", count, answers)

	admin.Do(t, "POST", readBill, upload(sample(t, goodBill)), 200)
	admin.Do(t, "POST", readBill, upload(sample(t, goodPDF)), 200)
	if measured {
		after := measureIdle(p)
		t.Logf("p95 of other users: %s before, %s during the load (%d and %d requests)", quiet.p95(), busy.p95(), len(quiet.took), len(busy.took))
		t.Logf("memory: %d MB before, at most %d MB during the load, %d MB afterwards; %d workers remain", quiet.memory, busy.memory, after.memory, after.workers)
		t.Logf("processor time in the ten seconds afterwards: %s", after.computed)
	}
	pids := systemtest.Workers(p.Cmd.Process.Pid)
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	expectEnded(t, pids)
}

// figures are measurements.
type figures struct {
	took     []time.Duration // times of the requests of other users
	memory   int             // peak memory of the server and its workers, in megabytes
	computed time.Duration
	workers  int
}

func (f figures) p95() time.Duration {
	if len(f.took) == 0 {
		return 0
	}
	slices.Sort(f.took)
	return f.took[len(f.took)*95/100].Round(10 * time.Microsecond)
}

// measure reads as another user until done is closed, or 1000 times when done is nil.
func measure(p *systemtest.Process, other *systemtest.Client, done <-chan struct{}) (f figures) {
	for n := 0; done != nil || n < 1000; n++ {
		select {
		case <-done:
			return f
		default:
		}
		began := time.Now()
		got, err := other.Try("GET", "/v1/users/me", "")
		if err != nil || got.Status != 200 {
			p.TB.Errorf("another user: got %d %s, %v", got.Status, got.Body, err)
			return f
		}
		f.took = append(f.took, time.Since(began))
		if n%50 == 0 {
			memory, _ := systemtest.Usage(p.Cmd.Process.Pid)
			f.memory = max(f.memory, memory)
		}
	}
	return f
}

// measureIdle waits until idle workers have ended, and measures the server.
func measureIdle(p *systemtest.Process) (f figures) {
	time.Sleep(75 * time.Second) // measured runs only
	_, before := systemtest.Usage(p.Cmd.Process.Pid)
	time.Sleep(10 * time.Second)
	memory, now := systemtest.Usage(p.Cmd.Process.Pid)
	return figures{memory: memory, computed: now - before, workers: len(systemtest.Workers(p.Cmd.Process.Pid))}
}
