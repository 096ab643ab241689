package sandbox

import "golang.org/x/sys/unix"

// machine identifies system calls of this processor. Those of its 32-bit modes have another identifier or other numbers.
const machine = unix.AUDIT_ARCH_X86_64

// allowedOnThisMachine are older forms of allowed calls that only this processor has.
var allowedOnThisMachine = []uintptr{unix.SYS_EPOLL_WAIT, unix.SYS_ARCH_PRCTL}
