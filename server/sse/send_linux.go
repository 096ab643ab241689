package sse

import (
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// streamsAtOnce is how many streams a writer takes from the queue at a time. It never waits for one of them.
const streamsAtOnce = 16

// rawConn returns the socket of a connection, to which a writer sends directly. It returns nil with TLS, and for a connection
// that is no socket.
func rawConn(conn net.Conn) syscall.RawConn {
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

// sender sends to sockets without waiting and without a deadline, which would cost a timer for each frame. A writer has one for
// all its streams.
type sender struct {
	data []byte
	sent int
	err  syscall.Errno
	call func(fd uintptr) // the method send, allocated once
}

func newSender() *sender {
	s := &sender{}
	s.call = s.send
	return s
}

// send sends as much as the socket accepts at once.
//
// The call does not go through the scheduler of the runtime, which saves a twentieth of its time: it only copies to the buffer of the
// socket and never waits for the client. No signal reports a closed connection.
func (s *sender) send(fd uintptr) {
	for {
		n, _, err := syscall.RawSyscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(s.data))), uintptr(len(s.data)),
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		switch err {
		case unix.EINTR:
			continue
		case 0:
			s.sent = int(n)
		}
		s.err = err
		return
	}
}

// writeNow writes what the client's connection accepts at once, and returns os.ErrDeadlineExceeded if that is not all. A
// connection that is no socket has the short timeout of fastWriteTimeout.
func (s *Stream) writeNow(b []byte, with *sender) (int, error) {
	if s.raw == nil { // set before the stream is live
		return s.write(b, fastWriteTimeout)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.Ended() {
		return 0, net.ErrClosed
	}
	with.data, with.sent, with.err = b, 0, 0
	err := s.raw.Control(with.call)
	with.data = nil
	switch {
	case err != nil:
		return 0, err
	case with.err == unix.EAGAIN, with.err == 0 && with.sent < len(b):
		return with.sent, os.ErrDeadlineExceeded
	case with.err != 0:
		return 0, with.err
	}
	return with.sent, nil
}
