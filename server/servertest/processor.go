//go:build unix

package servertest

import (
	"syscall"
	"testing"
	"time"
)

// Compare reports the ratio of the processor times of n requests and n others, run alternately on the same server. All answers
// must have the status want.
func Compare(b *testing.B, s *Server, n, want int, one, other []byte) {
	b.Helper()
	cost := func(request []byte) float64 {
		before := ProcessorTime(b)
		Load(b, s.Address, n, want, func(int) []byte { return request })
		return (ProcessorTime(b) - before).Seconds()
	}
	cost(one)
	cost(other)
	var ratios []float64
	for b.Loop() {
		ratios = append(ratios, cost(one)/cost(other))
	}
	b.ReportMetric(Median(ratios), "times")
}

// ProcessorTime returns the processor time that this process has used.
func ProcessorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
