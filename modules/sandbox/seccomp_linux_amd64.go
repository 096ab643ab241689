package sandbox

import "golang.org/x/sys/unix"

// machine is how the kernel marks system calls of this processor. Those of its 32-bit modes have other marks or numbers.
const machine = unix.AUDIT_ARCH_X86_64

// allowedHere are older forms of allowed calls that only this processor has.
var allowedHere = []uintptr{unix.SYS_EPOLL_WAIT, unix.SYS_ARCH_PRCTL}
