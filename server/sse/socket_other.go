//go:build !linux

package sse

import (
	"net"
	"syscall"
	"time"
)

// streamsAtOnce is how many streams a writer takes from the queue at a time. Each may wait for fastWriteTimeout.
const streamsAtOnce = 1

// socketOf returns nil: writers use the connection.
func socketOf(net.Conn) syscall.RawConn { return nil }

// writeNow writes with a short timeout.
func (s *Stream) writeNow(b []byte) (int, error) { return s.write(b, fastWriteTimeout) }

// hasUnsent returns true: the system provides no such information.
func hasUnsent(syscall.RawConn) bool { return true }

// setUserTimeout does nothing: a peer that does not answer is noticed after the system's own timeout.
func setUserTimeout(syscall.RawConn, time.Duration) {}

// poller watches nothing on this system: a goroutine reads each connection.
type poller struct{}

func (*poller) add(*Stream, net.Conn) bool { return false }
func (*poller) remove(*Stream)             {}
func (*poller) close()                     {}
