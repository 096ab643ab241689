package main

import (
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
	start(t, dir).stop() // the first start creates the administrator
	names := advisors(t, dir, clients)
	p := start(t, dir)
	admin := p.admin()
	admin.do(t, "POST", readBill, upload(sample(t, goodPDF)), 200)
	quiet := figures{}
	if measured {
		quiet = measure(p, admin, nil)
	}

	var next atomic.Int64
	var mutex sync.Mutex
	answers := map[string]int{}
	var group sync.WaitGroup
	for _, name := range names {
		attacker := p.signIn(name, adminPassword)
		group.Go(func() {
			for n := int(next.Add(1) - 1); n < count; n = int(next.Add(1) - 1) {
				kind, file := hostileFile(n)
				got, err := attacker.try("POST", readBill, upload(file))
				switch {
				case err != nil:
					t.Errorf("%s (%d): %v", kind, n, err)
				case got.status == 400 && got.code() == "invalid_input":
				case got.status == 503 && got.header.Get("Retry-After") != "":
				default:
					t.Errorf("%s (%d): got %d %.200s", kind, n, got.status, got.body)
				}
				mutex.Lock()
				answers[fmt.Sprint(got.status)]++
				mutex.Unlock()
			}
		})
	}
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	busy := measure(p, admin, done)
	t.Logf("%d files: %v", count, answers)

	admin.do(t, "POST", readBill, upload(sample(t, goodBill)), 200)
	admin.do(t, "POST", readBill, upload(sample(t, goodPDF)), 200)
	if measured {
		after := measureIdle(p)
		t.Logf("p95 of other users: %s before, %s during the load (%d and %d requests)", quiet.p95(), busy.p95(), len(quiet.took), len(busy.took))
		t.Logf("memory: %d MB before, at most %d MB during the load, %d MB afterwards; %d workers remain", quiet.memory, busy.memory, after.memory, after.workers)
		t.Logf("processor time in the ten seconds afterwards: %s", after.computed)
	}
	pids := workers(p.cmd.Process.Pid)
	if code := p.stop(); code != 0 {
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
func measure(p *process, other *client, done <-chan struct{}) (f figures) {
	for n := 0; done != nil || n < 1000; n++ {
		select {
		case <-done:
			return f
		default:
		}
		began := time.Now()
		got, err := other.try("GET", "/v1/users/me", "")
		if err != nil || got.status != 200 {
			p.tb.Errorf("another user: got %d %s, %v", got.status, got.body, err)
			return f
		}
		f.took = append(f.took, time.Since(began))
		if n%50 == 0 {
			memory, _ := usage(p.cmd.Process.Pid)
			f.memory = max(f.memory, memory)
		}
	}
	return f
}

// measureIdle waits until idle workers have ended, and measures the server.
func measureIdle(p *process) (f figures) {
	time.Sleep(75 * time.Second) // measured runs only
	_, before := usage(p.cmd.Process.Pid)
	time.Sleep(10 * time.Second)
	memory, now := usage(p.cmd.Process.Pid)
	return figures{memory: memory, computed: now - before, workers: len(workers(p.cmd.Process.Pid))}
}

// usage returns the memory of a process and its workers without the pages of the program, and their processor time,
// including that of ended children.
func usage(pid int) (megabytes int, computed time.Duration) {
	for _, id := range append(workers(pid), pid) {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", id)) // it may have ended
		for line := range strings.Lines(string(status)) {
			var kilobytes int
			if _, err := fmt.Sscanf(line, "RssAnon: %d kB", &kilobytes); err == nil {
				megabytes += kilobytes >> 10
			}
		}
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		const user, end = 11, 15 // user and system time of the process, and of ended children
		for i := user; i < end && end <= len(fields); i++ {
			ticks, _ := strconv.Atoi(fields[i]) // the kernel always writes numbers
			computed += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return megabytes, computed
}
