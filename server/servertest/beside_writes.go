//go:build unix

package servertest

import (
	"bufio"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// WritesPerSecond is the rate of the writes in BesideWrites.
const WritesPerSecond = 200

// BesideWrites compares the processor time of n reads, with the status 200, while nothing is written and while one client writes
// 200 times a second. It reports the median of the ratios without what the writes cost by themselves. write returns the i-th
// request, whose answer must have the status wrote.
func BesideWrites(b *testing.B, s *Server, n int, read []byte, wrote int, write func(i int) []byte) {
	b.Helper()
	var sent atomic.Int64
	writeFor := func(until <-chan struct{}) (writes int) {
		connection, err := net.Dial("tcp", s.Address)
		if err != nil {
			b.Error(err)
			return 0
		}
		defer connection.Close()
		reader, ticks := bufio.NewReader(connection), time.NewTicker(time.Second/WritesPerSecond)
		defer ticks.Stop()
		for {
			select {
			case <-until:
				return writes
			case <-ticks.C:
			}
			if _, err := connection.Write(write(int(sent.Add(1)))); err != nil {
				b.Error(err)
				return writes
			}
			if err := expect(reader, wrote); err != nil {
				b.Error(err)
				return writes
			}
			writes++
		}
	}
	cost := func(f func()) float64 {
		before := ProcessorTime(b)
		f()
		return (ProcessorTime(b) - before).Seconds()
	}
	reads := func() { Load(b, s.Address, n, 200, func(int) []byte { return read }) }
	alone := func() float64 { // of one write
		writes, until := 0, make(chan struct{})
		time.AfterFunc(2*time.Second, func() { close(until) })
		spent := cost(func() { writes = writeFor(until) })
		return spent / float64(max(writes, 1))
	}
	reads()
	var ratios []float64
	for b.Loop() {
		quiet, write := cost(reads), alone()
		writes, until := 0, make(chan struct{})
		var writing sync.WaitGroup
		beside := cost(func() {
			writing.Go(func() { writes = writeFor(until) })
			reads()
			close(until)
			writing.Wait()
		})
		ratios = append(ratios, (beside-float64(writes)*write)/quiet)
		b.ReportMetric(quiet/float64(n)*1e6, "quiet-cpu-µs/read")
	}
	b.ReportMetric(Median(ratios), "times")
}

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
