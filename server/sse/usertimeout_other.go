//go:build !linux

package sse

import (
	"net"
	"time"
)

// setUserTimeout does nothing: a peer that does not answer is noticed after the system's own timeout.
func setUserTimeout(net.Conn, time.Duration) {}
