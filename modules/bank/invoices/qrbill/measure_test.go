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

	"kontor/modules/bank/invoices/qrbill"
)

// reportMemory logs the sum of the peak memory of the process and its workers, and the sum of their present memory. It
// counts shared pages, mainly the program, for each process.
func reportMemory(t *testing.T) {
	peak, now, count := 0, 0, 0
	for _, pid := range processes() {
		if hwm, ok := memory(pid, "VmHWM"); ok {
			rss, _ := memory(pid, "VmRSS")
			peak, now, count = peak+hwm, now+rss, count+1
		}
	}
	t.Logf("memory of %d processes: peak %d MB, now %d MB", count, peak, now)
}

// processes returns the ids of this process and its workers.
func processes() []string {
	pids := []string{"self"}
	lists, _ := filepath.Glob("/proc/self/task/*/children") // the pattern is right
	for _, list := range lists {
		children, err := os.ReadFile(list)
		if err == nil { // otherwise the thread has ended
			pids = append(pids, strings.Fields(string(children))...)
		}
	}
	return pids
}

// memory returns a line of /proc/PID/status in megabytes.
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

// warm starts the PDF engine, so that the first file is not slower than the others.
func warm(t *testing.T, reader *qrbill.Reader, entries []entry) {
	for _, e := range entries {
		if e.Category == "pdf-vector" {
			_, _ = reader.Read(context.Background(), readFile(t, e), qrbill.Options{})
			return
		}
	}
}

// stopwatch measures processor time on Linux with one worker, so that other processes do not count. Otherwise it measures
// elapsed time.
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

// processTime returns the processor time of the process and its workers, in steps of 10 ms. The time of the parent includes
// workers that have ended.
func processTime() (sum time.Duration, ok bool) {
	for _, pid := range processes() {
		stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest) // from the third field on
		const user, ends = 11, 15      // user and system time of the process, and of ended children
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
