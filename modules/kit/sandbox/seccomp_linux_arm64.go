package sandbox

import "golang.org/x/sys/unix"

// machine identifies system calls of this processor.
const machine = unix.AUDIT_ARCH_AARCH64

// allowedOnThisMachine is empty: this processor has no older forms of calls.
var allowedOnThisMachine []uintptr
