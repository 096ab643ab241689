package metrics

import (
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
