package requestlog_test

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
)

// BenchmarkKeep measures what keeping requests adds to a GET of a customer. Two servers, without the log and with it, answer in alternating
// rounds over one connection. The results are the medians of the ratios of the time of a GET, and of the processor time of server and
// client. 20 rounds:
//
//	go test ./modules/developer/requestlog -run '^$' -bench Keep -benchtime 20x
func BenchmarkKeep(b *testing.B) {
	for name, with := range map[string]func() *servertest.Server{
		"log":     func() *servertest.Server { return servertest.Start(b, keep(10_000)) },
		"sandbox": func() *servertest.Server { return servertest.StartSandbox(b, false) }, // with bodies
	} {
		b.Run(name, func(b *testing.B) {
			var servers [2]*servertest.Server
			var requests [2][]byte
			for i, s := range []*servertest.Server{servertest.Start(b), with()} {
				customer := s.Admin().Create("/v1/customers", servertest.Body{"first_name": "Anna", "last_name": "Muster", "email": "anna@example.ch"})
				servers[i], requests[i] = s, s.User(access.Advisor).Request("GET", "/v1/customers/"+customer, "")
			}
			const perRound = 10_000
			measure := func(i int) (elapsed, processor float64) {
				runtime.GC() // of the former round
				began := processorTime(b)
				rate := servertest.LoadOver(b, []string{servers[i].Address}, perRound, 200, func(int) []byte { return requests[i] })
				return 1 / rate, float64(processorTime(b) - began)
			}
			measure(0)
			measure(1)
			var times, processor []float64
			for round := 0; b.Loop(); round++ {
				var elapsed, used [2]float64
				for _, i := range []int{round % 2, 1 - round%2} {
					elapsed[i], used[i] = measure(i)
				}
				times = append(times, 100*(elapsed[1]/elapsed[0]-1))
				processor = append(processor, 100*(used[1]/used[0]-1))
			}
			b.ReportMetric(servertest.Median(times), "%time")
			b.ReportMetric(servertest.Median(processor), "%processor")
		})
	}
}

// processorTime returns the processor time of the process.
func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
