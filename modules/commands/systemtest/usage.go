package systemtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// ResidentKiB returns the resident memory of a process.
func ResidentKiB(tb testing.TB, pid int) int { return procNumber(tb, pid, "status", "VmRSS:") }

// PeakKiB returns the largest resident memory that a process had.
func PeakKiB(tb testing.TB, pid int) int { return procNumber(tb, pid, "status", "VmHWM:") }

// procNumber returns the number after a label in a file of /proc/PID.
func procNumber(tb testing.TB, pid int, file, label string) int {
	tb.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		tb.Fatal(err) // only Linux has these files
	}
	n, err := strconv.Atoi(WordAfter(string(data), label))
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// ProcessorTime returns the processor time of a process, exactly.
func ProcessorTime(b *testing.B, pid int) time.Duration {
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

// Usage returns the memory of a process and its workers without the pages of the program, and their processor time,
// including that of ended children.
func Usage(pid int) (megabytes int, computed time.Duration) {
	for _, id := range append(Workers(pid), pid) {
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

// Workers returns the ids of the child processes of a process.
func Workers(pid int) []int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is right
	var all []int
	for _, list := range lists {
		children, _ := os.ReadFile(list) // the thread may have ended
		for _, field := range strings.Fields(string(children)) {
			var child int
			if _, err := fmt.Sscan(field, &child); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}
