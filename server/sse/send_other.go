//go:build !linux

package sse

import (
	"net"
	"syscall"
)

// streamsAtOnce is how many streams a writer takes from the queue at a time. Each may wait for fastWriteTimeout.
const streamsAtOnce = 1

// rawConn returns nil: writers use the connection.
func rawConn(net.Conn) syscall.RawConn { return nil }

// sender is empty on this system.
type sender struct{}

func newSender() *sender { return nil }

// writeNow writes with a short timeout.
func (s *Stream) writeNow(b []byte, _ *sender) (int, error) { return s.write(b, fastWriteTimeout) }
