//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// allowed are the system calls of a confined worker: reading and writing open descriptors, memory, time, and its own
// threads and signals. All others fail with EPERM. No allowed call opens a file or a socket, starts a program or makes
// memory executable.
var allowed = append([]uintptr{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_CLOSE,
	unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT,
	unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_MINCORE, unix.SYS_BRK,
	unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_NANOSLEEP, unix.SYS_GETTIMEOFDAY, unix.SYS_TIMER_SETTIME,
	unix.SYS_FUTEX, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ,
	unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_GETRANDOM,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
	unix.SYS_RESTART_SYSCALL, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
}, allowedOnThisMachine...)

// Offsets in the kernel's struct seccomp_data, indexes of arguments, and results of the filter.
const (
	dataNumber       = 0
	dataMachine      = 4
	dataArguments    = 16
	argumentSize     = 8
	protectionOf     = 2 // argument of mmap and mprotect
	threadFlagsOf    = 0 // argument of clone
	processOf        = 0 // argument of tgkill
	resultAllow      = unix.SECCOMP_RET_ALLOW
	resultNotAllowed = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	resultNoSuchCall = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// filterSystemCalls installs the filter for all threads of the process. A filter cannot be removed.
func filterSystemCalls() error {
	raw, err := bpf.Assemble(systemCallFilter(uint32(os.Getpid())))
	if err != nil {
		return fmt.Errorf("assemble filter: %w", err)
	}
	program := unix.SockFprog{Len: uint16(len(raw)), Filter: (*unix.SockFilter)(unsafe.Pointer(&raw[0]))}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if e != 0 {
		return fmt.Errorf("system call filter: %w", e)
	}
	return nil
}

// systemCallFilter returns the program that the kernel runs for each system call of the process.
func systemCallFilter(process uint32) []bpf.Instruction {
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: dataMachine, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: machine, SkipTrue: 1},
		bpf.RetConstant{Val: resultNotAllowed},
		bpf.LoadAbsolute{Off: dataNumber, Size: 4},
	}
	for _, number := range allowed {
		program = append(program,
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(number), SkipTrue: 1},
			bpf.RetConstant{Val: resultAllow})
	}
	executable := bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: unix.PROT_EXEC, SkipTrue: 1}
	for _, conditional := range []struct {
		number   uint32
		argument uint32
		allow    bpf.JumpIf // skips one instruction, the rejection
	}{
		{unix.SYS_MMAP, protectionOf, executable},
		{unix.SYS_MPROTECT, protectionOf, executable},
		{unix.SYS_CLONE, threadFlagsOf, bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.CLONE_THREAD, SkipTrue: 1}},
		{unix.SYS_TGKILL, processOf, bpf.JumpIf{Cond: bpf.JumpEqual, Val: process, SkipTrue: 1}},
	} {
		program = append(program,
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: conditional.number, SkipTrue: 4},
			bpf.LoadAbsolute{Off: dataArguments + argumentSize*conditional.argument, Size: 4},
			conditional.allow,
			bpf.RetConstant{Val: resultNotAllowed},
			bpf.RetConstant{Val: resultAllow})
	}
	// A filter cannot read the flags of clone3. The C library, which starts threads in programs with cgo, falls back to
	// clone on ENOSYS.
	return append(program,
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_CLONE3, SkipTrue: 1},
		bpf.RetConstant{Val: resultNoSuchCall},
		bpf.RetConstant{Val: resultNotAllowed})
}
