package qrbill_test

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"kontor/modules/invoices/qrbill"
)

// reportMemory logs the largest amount of memory the process had, and what is
// left once the reader has been idle for a while.
func reportMemory(t *testing.T) {
	most, ok := memory("VmHWM")
	if !ok {
		return // not Linux
	}
	debug.FreeOSMemory() // what the reader does itself after two idle seconds
	left, _ := memory("VmRSS")
	t.Logf("memory: at most %d MB, then %d MB", most, left)
}

// memory reads a line of the kernel's account of the process, in megabytes.
func memory(name string) (int, bool) {
	status, err := os.ReadFile("/proc/self/status")
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

// processTime is how long the process has been computing, in steps of 10 ms.
func processTime() (time.Duration, bool) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0, false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest) // from the third field on
	const user, system = 11, 12
	if len(fields) <= system {
		return 0, false
	}
	u, err1 := strconv.Atoi(fields[user])
	s, err2 := strconv.Atoi(fields[system])
	return time.Duration(u+s) * 10 * time.Millisecond, err1 == nil && err2 == nil
}
