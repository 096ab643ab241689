//go:build !linux

package sse

import "net"

// poller watches nothing on this system: a goroutine reads each connection.
type poller struct{}

func (*poller) add(*Stream, net.Conn) bool { return false }
func (*poller) remove(*Stream)             {}
func (*poller) close()                     {}
