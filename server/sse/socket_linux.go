package sse

import (
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// streamsAtOnce is how many streams a writer takes from the queue at a time. It never waits for one of them.
const streamsAtOnce = 16

// socketOf returns the socket of a connection, to which a writer sends directly. It returns nil with TLS, and for a connection
// that is no socket.
func socketOf(conn net.Conn) syscall.RawConn {
	socket, ok := conn.(syscall.Conn)
	if !ok || isSecure(conn) {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// writeNow writes what the client's connection accepts at once, and returns os.ErrDeadlineExceeded if that is not all. It has no
// deadline, which would cost a timer for each frame. A connection that is no socket has the short timeout of fastWriteTimeout.
func (s *Stream) writeNow(b []byte) (n int, err error) {
	if s.raw == nil { // set before the stream is live
		return s.write(b, fastWriteTimeout)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.Ended() {
		return 0, net.ErrClosed
	}
	var refused error
	err = s.raw.Control(func(fd uintptr) { n, refused = unix.Write(int(fd), b) }) // never waits: the runtime has opened it so
	switch {
	case err != nil:
		return 0, err
	case refused == unix.EAGAIN, refused == unix.EINTR:
		return 0, os.ErrDeadlineExceeded
	case refused != nil:
		return 0, refused
	case n < len(b):
		return n, os.ErrDeadlineExceeded
	}
	return n, nil
}

// hasUnsent reports whether the system still holds bytes that the client has not acknowledged, or cannot tell.
func hasUnsent(raw syscall.RawConn) bool {
	if raw == nil {
		return false
	}
	unsent := true
	err := raw.Control(func(fd uintptr) {
		if n, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ); err == nil {
			unsent = n > 0
		}
	})
	return err == nil && unsent
}

// setUserTimeout makes the system close a connection when written data is not acknowledged in time. Without it, a peer whose
// machine or network is down is noticed after a quarter of an hour.
func setUserTimeout(raw syscall.RawConn, d time.Duration) {
	if raw == nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		// If the system rejects the option, the disconnection is noticed later.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
	})
}
