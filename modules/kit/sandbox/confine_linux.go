//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// niceness is that of each priority. Normal workers keep the one of the server.
var niceness = map[Priority]int{Low: 5, Lowest: 10}

// Confines reports whether workers are confined and have a lower priority on this system.
const Confines = true

// lifetimeCPU is the limit of processor time over the life of a worker, in seconds. LimitCPU sets a far lower one per file.
const lifetimeCPU = 4 * 3600

// confine drops every privilege that processing a file does not need. Open descriptors and mapped memory stay usable.
func confine(memory int64) error {
	prepared, err := dataBytes()
	if err != nil {
		return err
	}
	for _, limit := range []struct {
		resource int
		max      uint64
	}{
		{unix.RLIMIT_DATA, prepared + raceFactor*uint64(memory)}, // RLIMIT_AS would count the address space that the Go runtime only reserves
		{unix.RLIMIT_NOFILE, 0},
		{unix.RLIMIT_FSIZE, 0},
		{unix.RLIMIT_CORE, 0},
		{unix.RLIMIT_MEMLOCK, 0},
		{unix.RLIMIT_CPU, lifetimeCPU},
	} {
		if err := unix.Setrlimit(limit.resource, &unix.Rlimit{Cur: limit.max, Max: limit.max}); err != nil {
			return fmt.Errorf("resource limit %d: %w", limit.resource, err)
		}
	}
	// Other processes of the same user, such as a compromised worker, must not read the memory of a worker.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("dumpable: %w", err)
	}
	if err := prepareCPULimit(); err != nil {
		return err
	}
	return filterSystemCalls()
}

// dataBytes returns the memory that RLIMIT_DATA limits. A worker that compiled the PDF engine keeps a mapping of some
// hundred megabytes. It has released their pages, and may use them again.
func dataBytes() (uint64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		var kilobytes uint64
		if _, err := fmt.Sscanf(line, "VmData: %d kB", &kilobytes); err == nil {
			return kilobytes << 10, nil
		}
	}
	return 0, errors.New("/proc/self/status has no line VmData")
}

// apply lowers the priority of all threads of the worker. The kernel has a priority per thread, and a new thread inherits it. The
// worker is its own process group. A server that was started with a lower priority keeps it.
func (p Priority) apply() error {
	nice, lower := niceness[p]
	if !lower {
		return nil
	}
	const systemCallBase = 20 // the system call returns 20 minus the niceness
	if own, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil && systemCallBase-own >= nice {
		return nil
	}
	if err := unix.Setpriority(unix.PRIO_PGRP, 0, nice); err != nil {
		return fmt.Errorf("priority: %w", err)
	}
	return nil
}

// closeInherited closes inherited descriptors that were not opened with close-on-exec, such as a listening socket from a
// service manager. It keeps the descriptors of the Go runtime.
func closeInherited() {
	const dir = "/proc/self/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // without /proc; the parent opens its own descriptors with close-on-exec
	}
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd <= unix.Stderr {
			continue
		}
		target, err := os.Readlink(filepath.Join(dir, entry.Name()))
		if err != nil || strings.HasPrefix(target, "anon_inode:[event") || strings.HasPrefix(target, "/sys/fs/cgroup/") {
			continue
		}
		_ = unix.Close(fd) // it may be the directory that was just read
	}
}
