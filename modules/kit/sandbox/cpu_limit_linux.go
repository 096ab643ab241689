//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// cpuTimer is a kernel timer on the processor time of the worker. When it expires, the kernel ends the process. A timer of
// the Go runtime would not do: compiled WebAssembly does not yield to the Go scheduler.
var cpuTimer int32

// isWorker is set when the process is confined.
var isWorker bool

// cpuSignal ends the process, because prepareCPULimit removes the handler of the Go runtime.
const cpuSignal = unix.SIGXCPU

// signalEvent is the kernel's struct sigevent.
type signalEvent struct {
	value  uint64
	signal int32
	notify int32
	_      [48]byte
}

func prepareCPULimit() error {
	var defaultAction [32]byte // struct sigaction of all zeros: SIG_DFL, no flags, no mask
	const setSize = 8
	if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(cpuSignal), uintptr(unsafe.Pointer(&defaultAction)), 0, setSize, 0, 0); e != 0 {
		return fmt.Errorf("signal action: %w", e)
	}
	event := signalEvent{signal: int32(cpuSignal)} // notify 0: a signal to the process
	_, _, e := unix.RawSyscall(unix.SYS_TIMER_CREATE, unix.CLOCK_PROCESS_CPUTIME_ID, uintptr(unsafe.Pointer(&event)), uintptr(unsafe.Pointer(&cpuTimer)))
	if e != 0 {
		return fmt.Errorf("processor timer: %w", e)
	}
	isWorker = true
	return nil
}

// ProcessorTime returns the processor time that this process has used.
func ProcessorTime() time.Duration {
	var used unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &used); err != nil {
		panic(fmt.Sprintf("processor time: %v", err)) // the worker must not continue without a limit
	}
	return time.Duration(used.Nano())
}

// LimitCPU ends the worker when it uses more processor time than limit before stop is called. It does nothing in a process
// that is not a worker.
func LimitCPU(limit time.Duration) (stop func()) {
	if !isWorker {
		return func() {}
	}
	setCPUTimer(max(limit, time.Nanosecond))
	return func() { setCPUTimer(0) }
}

// setCPUTimer panics when the kernel rejects the timer, because the worker must not continue without a limit.
func setCPUTimer(limit time.Duration) {
	setting := [2]unix.Timespec{{}, unix.NsecToTimespec(int64(limit))}
	if _, _, e := unix.RawSyscall6(unix.SYS_TIMER_SETTIME, uintptr(cpuTimer), 0, uintptr(unsafe.Pointer(&setting)), 0, 0, 0); e != 0 {
		panic(fmt.Sprintf("processor timer: %v", e))
	}
}
