package testenv

import (
	"os/exec"
	"syscall"
)

// Child has the kernel kill a process when the thread that starts it ends, at the latest with the test process. Call it before the
// process starts. In a test that locks goroutines to threads, use [Start] instead.
func Child(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
