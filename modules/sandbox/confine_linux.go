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

// niceness is the priority of workers below that of the server: whoever waits for an answer from the database must not
// wait for somebody's invoice.
const niceness = 5

// lifetimeCPU bounds what a worker may compute in all its life, in seconds. LimitCPU bounds each file far below it.
const lifetimeCPU = 4 * 3600

// confine gives up everything that reading a file does not need. What is already open, mapped and compiled stays usable.
func confine(memory int64) error {
	prepared, err := dataBytes()
	if err != nil {
		return err
	}
	for _, limit := range []struct {
		resource int
		most     uint64
	}{
		{unix.RLIMIT_DATA, prepared + detectorCost*uint64(memory)}, // address space is no measure: the Go runtime reserves much and uses little
		{unix.RLIMIT_NOFILE, 0},
		{unix.RLIMIT_FSIZE, 0},
		{unix.RLIMIT_CORE, 0},
		{unix.RLIMIT_MEMLOCK, 0},
		{unix.RLIMIT_CPU, lifetimeCPU},
	} {
		if err := unix.Setrlimit(limit.resource, &unix.Rlimit{Cur: limit.most, Max: limit.most}); err != nil {
			return fmt.Errorf("resource limit %d: %w", limit.resource, err)
		}
	}
	// Other processes of the same user must not look into a worker, such as one that was taken over.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("dumpable: %w", err)
	}
	if err := prepareCPULimit(); err != nil {
		return err
	}
	return filterSystemCalls()
}

// dataBytes is what RLIMIT_DATA limits. A worker that had to compile has mapped some hundred megabytes, which it has
// given back and may take again.
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
	return 0, errors.New("the kernel does not say how much memory is mapped")
}

// lowerPriority is for all threads of the worker, which is a process group of its own: the kernel keeps a priority for
// each thread, and a thread inherits it from the one that starts it.
func lowerPriority() error {
	if err := unix.Setpriority(unix.PRIO_PGRP, 0, niceness); err != nil {
		return fmt.Errorf("priority: %w", err)
	}
	return nil
}

// closeInherited closes descriptors that the parent had not marked as its own: a listening socket, for example, that a
// supervisor handed to it. Those of the Go runtime stay.
func closeInherited() {
	const dir = "/proc/self/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // without /proc; the parent marks what it opens itself
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
