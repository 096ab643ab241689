package metrics

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/prometheus/procfs"
)

// began is about the start of the process, for systems that do not tell it.
var began = time.Now()

// Process adds the metrics of the process. Systems without /proc have only its start.
func Process(s *Scrape) {
	start := float64(began.UnixMilli()) / 1000
	if self, err := procfs.Self(); err == nil {
		if known := addProcess(s, self); known > 0 {
			start = known
		}
	}
	s.Gauge("process_start_time_seconds", "Start of the process.", start)
}

// addProcess adds what the system says about a process, and returns the start of it; 0 if it does not say it.
func addProcess(s *Scrape, p procfs.Proc) (start float64) {
	if stat, err := p.Stat(); err == nil {
		s.Counter("process_cpu_seconds_total", "Processor time of the process.", stat.CPUTime())
		s.Gauge("process_resident_memory_bytes", "Memory of the process that is not swapped out.", float64(stat.ResidentMemory()))
		s.Gauge("process_virtual_memory_bytes", "Address space of the process.", float64(stat.VirtualMemory()))
		start, _ = stat.StartTime()
	}
	if files, err := p.FileDescriptorsLen(); err == nil {
		s.Gauge("process_open_fds", "Open files of the process.", float64(files))
	}
	if limits, err := p.Limits(); err == nil {
		s.Gauge("process_max_fds", "How many files the process may open.", float64(limits.OpenFiles))
		s.Gauge("process_virtual_memory_max_bytes", "How large the address space may become.", float64(limits.AddressSpace))
	}
	if net, err := p.Netstat(); err == nil && net.InOctets != nil && net.OutOctets != nil {
		s.Counter("process_network_receive_bytes_total", "Bytes that the network namespace of the process has received.", *net.InOctets)
		s.Counter("process_network_transmit_bytes_total", "Bytes that the network namespace of the process has sent.", *net.OutOctets)
	}
	return start
}

// runtimeValue is a metric of the Go runtime: the sum of values of the package runtime/metrics. The names are those of the official
// client of Prometheus, which dashboards expect.
type runtimeValue struct {
	name, help string
	total      bool // only grows
	of         []string
}

var runtimeValues = []runtimeValue{
	{"go_goroutines", "Goroutines that exist.", false, []string{"/sched/goroutines:goroutines"}},
	{"go_sched_gomaxprocs_threads", "Threads that run Go code at once.", false, []string{"/sched/gomaxprocs:threads"}},
	{"go_gc_gogc_percent", "Growth of the heap after which the garbage collector runs.", false, []string{"/gc/gogc:percent"}},
	{"go_gc_gomemlimit_bytes", "Memory limit of the Go runtime.", false, []string{"/gc/gomemlimit:bytes"}},
	{"go_memstats_alloc_bytes", "Objects of the heap.", false, []string{"/memory/classes/heap/objects:bytes"}},
	{"go_memstats_alloc_bytes_total", "All memory that was allocated on the heap.", true, []string{"/gc/heap/allocs:bytes"}},
	{"go_memstats_mallocs_total", "All objects that were allocated on the heap.", true, []string{"/gc/heap/allocs:objects", "/gc/heap/tiny/allocs:objects"}},
	{"go_memstats_frees_total", "All objects of the heap that were freed.", true, []string{"/gc/heap/frees:objects", "/gc/heap/tiny/allocs:objects"}},
	{"go_memstats_sys_bytes", "Memory that the runtime has mapped.", false, []string{"/memory/classes/total:bytes"}},
	{"go_memstats_heap_alloc_bytes", "Objects of the heap.", false, []string{"/memory/classes/heap/objects:bytes"}},
	{"go_memstats_heap_objects", "Number of objects of the heap.", false, []string{"/gc/heap/objects:objects"}},
	{"go_memstats_heap_inuse_bytes", "Parts of the heap with objects.", false, []string{"/memory/classes/heap/objects:bytes", "/memory/classes/heap/unused:bytes"}},
	{"go_memstats_heap_idle_bytes", "Parts of the heap without objects.", false, []string{"/memory/classes/heap/free:bytes", "/memory/classes/heap/released:bytes"}},
	{"go_memstats_heap_released_bytes", "Parts of the heap that were returned to the system.", false, []string{"/memory/classes/heap/released:bytes"}},
	{"go_memstats_heap_sys_bytes", "Memory that is mapped for the heap.", false, []string{"/memory/classes/heap/objects:bytes", "/memory/classes/heap/unused:bytes",
		"/memory/classes/heap/free:bytes", "/memory/classes/heap/released:bytes"}},
	{"go_memstats_stack_inuse_bytes", "Stacks of goroutines.", false, []string{"/memory/classes/heap/stacks:bytes"}},
	{"go_memstats_stack_sys_bytes", "Stacks of goroutines and of threads.", false, []string{"/memory/classes/heap/stacks:bytes", "/memory/classes/os-stacks:bytes"}},
	{"go_memstats_mspan_inuse_bytes", "The runtime's records of spans.", false, []string{"/memory/classes/metadata/mspan/inuse:bytes"}},
	{"go_memstats_mspan_sys_bytes", "Memory that is mapped for records of spans.", false, []string{"/memory/classes/metadata/mspan/inuse:bytes", "/memory/classes/metadata/mspan/free:bytes"}},
	{"go_memstats_mcache_inuse_bytes", "The runtime's caches of threads.", false, []string{"/memory/classes/metadata/mcache/inuse:bytes"}},
	{"go_memstats_mcache_sys_bytes", "Memory that is mapped for caches of threads.", false, []string{"/memory/classes/metadata/mcache/inuse:bytes", "/memory/classes/metadata/mcache/free:bytes"}},
	{"go_memstats_buck_hash_sys_bytes", "Memory for profiles.", false, []string{"/memory/classes/profiling/buckets:bytes"}},
	{"go_memstats_gc_sys_bytes", "Memory of the garbage collector.", false, []string{"/memory/classes/metadata/other:bytes"}},
	{"go_memstats_other_sys_bytes", "Other memory of the runtime.", false, []string{"/memory/classes/other:bytes"}},
	{"go_memstats_next_gc_bytes", "Size of the heap at which the garbage collector runs next.", false, []string{"/gc/heap/goal:bytes"}},
}

// Runtime adds the metrics of the Go runtime.
func Runtime(s *Scrape) {
	for _, v := range runtimeValues {
		add := s.Gauge
		if v.total {
			add = s.Counter
		}
		add(v.name, v.help, v.read())
	}
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	s.Summary("go_gc_duration_seconds", "Pauses of the garbage collector.", uint64(gc.NumGC), gc.PauseTotal.Seconds()) //nolint:gosec // a count
	last := 0.0
	if gc.NumGC > 0 {
		last = float64(gc.LastGC.UnixNano()) / 1e9
	}
	s.Gauge("go_memstats_last_gc_time_seconds", "Time at which the garbage collector ran last.", last)
	threads, _ := runtime.ThreadCreateProfile(nil)
	s.Gauge("go_threads", "Threads that were created.", float64(threads))
	s.Gauge("go_info", "The version of Go.", 1, "version", runtime.Version())
}

// read returns the sum of the values. Values that this version of the runtime does not have count as 0.
func (v runtimeValue) read() (sum float64) {
	samples := make([]metrics.Sample, len(v.of))
	for i, name := range v.of {
		samples[i].Name = name
	}
	metrics.Read(samples)
	for _, sample := range samples {
		if sample.Value.Kind() == metrics.KindUint64 {
			sum += float64(sample.Value.Uint64())
		}
	}
	return sum
}
