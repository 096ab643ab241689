package testenv

import (
	"os/exec"
	"syscall"
)

// Child has the kernel kill a process when the test process ends, whatever ends it. Call it before the process starts.
func Child(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
