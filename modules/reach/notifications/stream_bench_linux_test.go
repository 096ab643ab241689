package notifications_test

import (
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"kontor/server/servertest"
)

// loadBurst is how many events a benchmark sends one after the other without a pause.
const loadBurst = 10

// BenchmarkStreams opens 10,000 streams, ten for each of 1,000 users, and sends events to all of them: one alone, whose latency it
// reports, and then ten without a pause, whose frames per second it reports. The frames of two users differ, because each has a
// notification of their own.
//
// The clients run in another process on the same machine. Frames per second contain their work, which is reported as
// client-us/frame. cpu-us/frame is the least processor time of the server, with the writing of the notifications and of the times
// at which they were sent. It depends least on other work of the machine.
func BenchmarkStreams(b *testing.B) { benchmarkStreams(b, 1000, 10) }

// BenchmarkStreamsOfManyUsers is BenchmarkStreams with one stream for each of 10,000 users. Most of it is the writing of their
// notifications.
func BenchmarkStreamsOfManyUsers(b *testing.B) { benchmarkStreams(b, 10_000, 1) }

func benchmarkStreams(b *testing.B, users, each int) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < uint64(users*each+1000) {
		b.Fatal("ulimit -n 12000 is needed")
	}
	c := newStreamLoad(b, users, each)
	var rates, p99s, server, clients []float64
	round := func(events int) {
		used := servertest.ProcessorTime(b)
		for range events {
			c.send(b)
		}
		first := c.received(b)
		last := first
		for range events - 1 {
			last = c.received(b)
		}
		frames := float64(events * c.streams)
		if events == 1 {
			p99s = append(p99s, float64(last.p99)/1e6)
			return
		}
		c.Notifications.FlushSent()
		rates = append(rates, frames/time.Duration(last.last-first.sent).Seconds())
		server = append(server, float64((servertest.ProcessorTime(b)-used).Microseconds())/frames)
		clients = append(clients, float64((last.clients-first.clients).Microseconds())/(frames-float64(c.streams)))
	}
	for b.Loop() {
		round(1)
		round(loadBurst)
	}
	b.ReportMetric(slices.Min(server), "cpu-us/frame")
	b.ReportMetric(slices.Min(clients), "client-us/frame")
	b.ReportMetric(servertest.Median(rates), "frames/s")
	b.ReportMetric(servertest.Median(p99s), "p99-ms")
	b.ReportMetric(c.perStream, "rss-B/stream")
}

// BenchmarkDeadClients kills 5,000 clients at once and measures how long the server keeps their streams.
func BenchmarkDeadClients(b *testing.B) {
	for b.Loop() {
		c := newStreamLoad(b, 500, 10)
		before := runtime.NumGoroutine()
		began := time.Now()
		c.kill()
		eventually(b, func() bool { return len(c.Notifications.Connected()) == 0 })
		b.ReportMetric(time.Since(began).Seconds(), "s-to-free")
		eventually(b, func() bool { return runtime.NumGoroutine() <= before-c.streams+100 })
	}
}
