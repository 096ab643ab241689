package sse

import (
	"net"
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT of tcp(7), which package syscall does not define.
const tcpUserTimeout = 0x12

// setUserTimeout makes the system close a connection when written data is not acknowledged in time. Without it, a peer whose
// machine or network is down is noticed after a quarter of an hour.
func setUserTimeout(conn net.Conn, d time.Duration) {
	tcp, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		// If the system rejects the option, the disconnection is noticed later.
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(d.Milliseconds()))
	})
}
