package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// executablePath returns the path of the running program, even if an upgrade has replaced its file.
func executablePath() (string, error) { return "/proc/self/exe", nil }

// processAttributes make the kernel kill a worker when its parent ends. The worker gets its own process group, so that it
// does not receive signals from the terminal.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// residentBytes returns the resident memory of a process without shared pages, or 0 when it is unknown.
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
	shared, _ := strconv.ParseInt(string(fields[2]), 10, 64) // the program, which all workers share
	return (resident - shared) * int64(os.Getpagesize())
}
