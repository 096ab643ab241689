//go:build linux && amd64

package crash_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"kontor/store/testenv"
)

// A traced program (ptrace) stops before each system call, and can be killed there. strace could do this, too, but it counts
// the calls of each thread separately.

// changing are the calls that change files, the names of files, or the output.
var changing = []uint64{
	syscall.SYS_OPEN, syscall.SYS_OPENAT, syscall.SYS_WRITE, syscall.SYS_PWRITE64, syscall.SYS_PWRITEV, syscall.SYS_WRITEV,
	syscall.SYS_FSYNC, syscall.SYS_FDATASYNC, syscall.SYS_TRUNCATE, syscall.SYS_FTRUNCATE, syscall.SYS_FALLOCATE,
	syscall.SYS_RENAME, syscall.SYS_RENAMEAT, sysRenameat2, syscall.SYS_LINK, syscall.SYS_LINKAT, syscall.SYS_UNLINK, syscall.SYS_UNLINKAT,
	syscall.SYS_MKDIR, syscall.SYS_MKDIRAT, syscall.SYS_RMDIR, syscall.SYS_FLOCK, syscall.SYS_FCHMOD, syscall.SYS_CHMOD, sysCopyFileRange,
}

// naming are the calls that change names, which make other changes take effect.
var naming = []uint64{
	syscall.SYS_RENAME, syscall.SYS_RENAMEAT, sysRenameat2, syscall.SYS_LINK, syscall.SYS_LINKAT, syscall.SYS_MKDIR, syscall.SYS_MKDIRAT, syscall.SYS_RMDIR,
}

const (
	sysRenameat2     = 316
	sysCopyFileRange = 326

	ptraceGetSyscallInfo = 0x420e
	ptraceExitKill       = 1 << 20
	syscallStop          = syscall.SIGTRAP | 0x80
	syscallEntry         = 1
	waitAll              = 0x40000000 // __WALL: include threads
)

// traced is the result of a traced run.
type traced struct {
	calls          []uint64 // the calls in changing, in order
	shown          []int    // indexes of calls that wrote to standard output
	killed         bool
	stdout, stderr string
}

// trace runs a command, and kills it before the nth call in changing (from 0), or when standard error contains until. A
// negative n kills at no call.
func trace(t *testing.T, cmd *exec.Cmd, n int, until string) traced {
	t.Helper()
	dir := t.TempDir()
	stdout, err := os.Create(filepath.Join(dir, "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	defer stdout.Close()
	stderr, err := os.Create(filepath.Join(dir, "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Setpgid: true}

	var done traced
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the tracer must be one thread, which ends with the goroutine
		ended <- done.follow(cmd, n, func() bool {
			if until == "" {
				return false
			}
			output, _ := os.ReadFile(stderr.Name())
			return bytes.Contains(output, []byte(until))
		})
	}()
	if err := <-ended; err != nil {
		t.Fatalf("trace: %v", err)
	}
	for _, out := range []struct {
		from *os.File
		to   *string
	}{{stdout, &done.stdout}, {stderr, &done.stderr}} {
		text, err := os.ReadFile(out.from.Name())
		if err != nil {
			t.Fatal(err)
		}
		*out.to = string(text)
	}
	return done
}

// follow starts the command and traces all its threads to their end.
func (d *traced) follow(cmd *exec.Cmd, n int, enough func() bool) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	leader := cmd.Process.Pid
	var isLate atomic.Bool
	late := time.AfterFunc(testenv.Limit(), func() {
		isLate.Store(true)
		_ = syscall.Kill(leader, syscall.SIGKILL) // it has not been waited for
	})
	defer late.Stop()
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(leader, &status, 0, nil); err != nil {
		return err
	}
	if err := syscall.PtraceSetOptions(leader, syscall.PTRACE_O_TRACESYSGOOD|syscall.PTRACE_O_TRACECLONE|ptraceExitKill); err != nil {
		return err
	}
	if err := syscall.PtraceSyscall(leader, 0); err != nil {
		return err
	}
	for {
		thread, err := syscall.Wait4(-leader, &status, waitAll, nil) // not -1: the thread may have started processes of other tests
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		if !status.Stopped() {
			if thread == leader && isLate.Load() {
				return fmt.Errorf("the command has not ended within %v", testenv.Limit())
			}
			if thread == leader {
				return nil
			}
			continue
		}
		signal := 0
		switch stop := status.StopSignal(); stop {
		case syscallStop:
			if d.called(thread, n) || enough() {
				d.killed = true
				_ = syscall.Kill(leader, syscall.SIGKILL) // it may have ended already
				continue
			}
		case syscall.SIGTRAP, syscall.SIGSTOP: // a new thread
		default:
			signal = int(stop)
		}
		_ = syscall.PtraceSyscall(thread, signal) // fails for a thread that was killed, which Wait4 reports next
	}
}

// called records a call before it is executed, and reports whether to kill the program there.
func (d *traced) called(thread, n int) bool {
	var info struct {
		op     uint8
		_      [3]uint8
		_      uint32
		_, _   uint64
		number uint64
		args   [6]uint64
	}
	size, _, errno := syscall.Syscall6(syscall.SYS_PTRACE, ptraceGetSyscallInfo, uintptr(thread), unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
	if errno != 0 || size == 0 || info.op != syscallEntry || !slices.Contains(changing, info.number) {
		return false
	}
	if info.number == syscall.SYS_WRITE {
		switch info.args[0] {
		case 1:
			d.shown = append(d.shown, len(d.calls))
		case 2: // the log
			return false
		}
	}
	d.calls = append(d.calls, info.number)
	return len(d.calls)-1 == n
}
