//go:build linux

package systemtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"kontor/store/testenv"
)

// Signal suspends a process or lets it continue.
func (p *Process) Signal(s syscall.Signal) {
	p.TB.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil {
		p.TB.Fatal(err)
	}
}

// Suspend suspends a process. When it returns, no thread of it is running any more.
func (p *Process) Suspend() {
	p.TB.Helper()
	p.Signal(syscall.SIGSTOP)
	testenv.Wait(p.TB, "all threads of the process to be suspended", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Cmd.Process.Pid))
		if err != nil || len(threads) == 0 {
			p.TB.Fatalf("the threads of the process cannot be listed: %v", err)
		}
		for _, name := range threads {
			stat, err := os.ReadFile(name)
			if _, state, _ := strings.Cut(string(stat), ") "); err != nil || !strings.HasPrefix(state, "T") {
				return false
			}
		}
		return true
	})
}
