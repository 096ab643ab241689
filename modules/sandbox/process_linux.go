package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// executablePath is the program that runs now, even if another one has taken its name since, as in an upgrade.
func executablePath() (string, error) { return "/proc/self/exe", nil }

// processAttributes bind the life of a worker to ours. A process group of its own keeps the signals of a terminal away.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// residentBytes is the memory that a process has, or 0 when the kernel does not say.
func residentBytes(pid int) int64 {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(statm)
	if len(fields) < 3 {
		return 0
	}
	resident, _ := strconv.ParseInt(string(fields[1]), 10, 64)
	shared, _ := strconv.ParseInt(string(fields[2]), 10, 64) // the program itself, which all workers share
	return (resident - shared) * int64(os.Getpagesize())
}
