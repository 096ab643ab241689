package sse

import (
	"net"
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT of tcp(7), which package syscall does not name.
const tcpUserTimeout = 0x12

// boundSilence makes the system give a connection up when what was written is not acknowledged for so long. Without it
// a peer that is gone without a word, its machine or its line dead, is noticed after a quarter of an hour.
func boundSilence(conn net.Conn, d time.Duration) {
	tcp, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		// Where the system refuses, the client is noticed later.
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(d.Milliseconds()))
	})
}
