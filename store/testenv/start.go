package testenv

import (
	"os/exec"
	"runtime"
	"sync"
)

// starter is a goroutine that starts processes on a thread of its own, which lives as long as the test process. The kernel binds a
// child to the thread that started it (see [Child]), and Go may end the threads of other goroutines.
var starter = sync.OnceValue(func() chan<- func() {
	starts := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range starts {
			start()
		}
	}()
	return starts
})

// Start starts a process that the kernel kills when the test process ends, whatever ends it.
func Start(cmd *exec.Cmd) error {
	Child(cmd)
	started := make(chan error)
	starter() <- func() { started <- cmd.Start() }
	return <-started
}
