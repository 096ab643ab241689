package sse

import (
	"errors"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// sender writes to sockets without waiting and without a deadline, which would cost a timer for each frame. A writer has one for
// all its streams.
type sender struct {
	rest []byte // not written
	err  error
	send func(fd uintptr) bool // the method, allocated once
}

func newSender() *sender {
	s := &sender{}
	s.send = s.write
	return s
}

// write writes as much as the system accepts at once.
func (s *sender) write(fd uintptr) bool {
	for len(s.rest) > 0 {
		n, err := unix.Write(int(fd), s.rest)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if s.err = err; err != nil {
			break
		}
		s.rest = s.rest[n:]
	}
	return true // never wait
}

// writeNow writes what the client's connection accepts at once, and returns os.ErrDeadlineExceeded if that is not all. It is for
// TCP on this system; others have the short timeout of fastWriteTimeout.
func (s *Stream) writeNow(b []byte, with *sender) (int, error) {
	socket, ok := s.conn.(*net.TCPConn) // set before the stream is live
	if !ok {
		return s.write(b, fastWriteTimeout)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.Ended() {
		return 0, net.ErrClosed
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, err
	}
	with.rest, with.err = b, nil
	err = raw.Write(with.send)
	n := len(b) - len(with.rest)
	with.rest = nil
	switch {
	case err != nil:
		return n, err
	case errors.Is(with.err, syscall.EAGAIN):
		return n, os.ErrDeadlineExceeded
	default:
		return n, with.err
	}
}
