package metrics_test

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"

	"kontor/server/metrics"
)

// write returns the text of the metrics of one source.
func write(t *testing.T, source metrics.Source) string {
	t.Helper()
	var b strings.Builder
	if err := metrics.Write(&b, source); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWrite_GroupsAndOrdersTheSeries(t *testing.T) {
	got := write(t, func(s *metrics.Scrape) {
		s.Gauge("open", "Open things.", 3)
		s.Counter("done_total", "Done things.", 1, "kind", "a")
		s.Gauge("level", `Text of two lines:`+"\n"+`and a \ in it.`, math.Inf(1))
		s.Counter("done_total", "Done things.", 1e21, "kind", "a \"b\"\n\\", "other", "")
		s.Summary("pause_seconds", "Pauses.", 2, 0.5)
		s.Gauge("unknown", "No number.", math.NaN())
	})
	want := `# HELP done_total Done things.
# TYPE done_total counter
done_total{kind="a"} 1
done_total{kind="a \"b\"\n\\",other=""} 1e+21
# HELP level Text of two lines:\nand a \\ in it.
# TYPE level gauge
level +Inf
# HELP open Open things.
# TYPE open gauge
open 3
# HELP pause_seconds Pauses.
# TYPE pause_seconds summary
pause_seconds_sum 0.5
pause_seconds_count 2
# HELP unknown No number.
# TYPE unknown gauge
unknown NaN
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestHistogram_CountsUpToAndIncludingABound(t *testing.T) {
	h := metrics.NewHistogram([]float64{.1, 1})
	for _, value := range []float64{0, .1, .5, 1, 2} {
		h.Observe(value)
	}
	got := write(t, func(s *metrics.Scrape) { s.Histogram("took_seconds", "Durations.", h, "job", "x") })
	want := `# HELP took_seconds Durations.
# TYPE took_seconds histogram
took_seconds_bucket{job="x",le="0.1"} 2
took_seconds_bucket{job="x",le="1"} 4
took_seconds_bucket{job="x",le="+Inf"} 5
took_seconds_sum{job="x"} 3.6
took_seconds_count{job="x"} 5
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestHistogram_LosesNothingOfConcurrentObservations(t *testing.T) {
	h := metrics.NewHistogram([]float64{1})
	var all sync.WaitGroup
	const each, writers = 1000, 4
	for range writers {
		all.Go(func() {
			for range each {
				h.Observe(.5)
			}
		})
	}
	all.Wait()
	got := write(t, func(s *metrics.Scrape) { s.Histogram("took", "Durations.", h) })
	if !strings.Contains(got, "took_sum 2000\n") || !strings.Contains(got, "took_count 4000\n") {
		t.Errorf("after 4000 observations of 0.5:\n%s", got)
	}
}

func TestRuntimeAndProcess_HaveValues(t *testing.T) {
	text := write(t, func(s *metrics.Scrape) { metrics.Runtime(s); metrics.Process(s) })
	names := []string{"go_goroutines", "go_memstats_heap_inuse_bytes", "go_memstats_sys_bytes", "go_sched_gomaxprocs_threads", "go_threads", "process_start_time_seconds"}
	if runtime.GOOS == "linux" {
		names = append(names, "process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_max_fds")
	}
	for _, name := range names {
		unknown := strings.Contains(text, "\n"+name+" 0\n") && name != "process_cpu_seconds_total" // a short test takes less than the clock's unit
		if unknown || !strings.Contains(text, "\n"+name+" ") {
			t.Errorf("%s has no value", name)
		}
	}
}

// broken is a client that has gone.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("gone") }

func TestWrite_ReportsAClientThatHasGone(t *testing.T) {
	if err := metrics.Write(broken{}, metrics.Runtime); err == nil {
		t.Error("no error")
	}
}
