package sse

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// hasUnsent reports whether the system still holds bytes that the client has not acknowledged, or cannot tell.
func hasUnsent(conn net.Conn) bool {
	tcp, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	unsent := true
	err = raw.Control(func(fd uintptr) {
		if n, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ); err == nil {
			unsent = n > 0
		}
	})
	return err == nil && unsent
}
