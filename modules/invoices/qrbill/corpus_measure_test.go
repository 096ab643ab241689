package qrbill_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"kontor/modules/invoices/qrbill"
)

// reportMemory logs how much memory the process and its workers ever had at most, each for itself, and what is left
// now. What a worker shares with the others, the program above all, is counted for each.
func reportMemory(t *testing.T) {
	most, left, count := 0, 0, 0
	for _, pid := range processes() {
		if hwm, ok := memory(pid, "VmHWM"); ok {
			rss, _ := memory(pid, "VmRSS")
			most, left, count = most+hwm, left+rss, count+1
		}
	}
	t.Logf("memory of %d processes: at most %d MB, now %d MB", count, most, left)
}

// processes are this process and its workers.
func processes() []string {
	pids := []string{"self"}
	lists, _ := filepath.Glob("/proc/self/task/*/children") // the pattern is right
	for _, list := range lists {
		children, err := os.ReadFile(list)
		if err == nil { // else the thread is gone
			pids = append(pids, strings.Fields(string(children))...)
		}
	}
	return pids
}

// memory reads a line of the kernel's account of a process, in megabytes.
func memory(pid, name string) (int, bool) {
	status, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, name+":"); found {
			kilobytes, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			return kilobytes >> 10, err == nil
		}
	}
	return 0, false
}

func workers() int {
	if n, err := strconv.Atoi(os.Getenv("KONTOR_QR_WORKERS")); err == nil && n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// warm starts the PDF engine, so that times are those of a running service.
func warm(t *testing.T, reader *qrbill.Reader, entries []entry) {
	for _, e := range entries {
		if e.Category == "pdf-vector" {
			_, _ = reader.Read(context.Background(), readFile(t, e), qrbill.Options{})
			return
		}
	}
}

// stopwatch measures computing time where one file is read at a time on Linux,
// so that other work on the machine does not count, and else what a clock shows.
func stopwatch() func() time.Duration {
	start := time.Now()
	computed, ok := processTime()
	return func() time.Duration {
		if now, _ := processTime(); ok && workers() == 1 {
			return now - computed
		}
		return time.Since(start)
	}
}

// processTime is how long the process and its workers have been computing, in steps of 10 ms. Workers that ended are in
// the account of their parent.
func processTime() (sum time.Duration, ok bool) {
	for _, pid := range processes() {
		stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest) // from the third field on
		const user, ends = 11, 15      // user and system time, then those of ended children
		if len(fields) < ends {
			return 0, false
		}
		for _, field := range fields[user:ends] {
			ticks, err := strconv.Atoi(field)
			if err != nil {
				return 0, false
			}
			sum += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return sum, sum > 0
}
