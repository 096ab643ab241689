//go:build !linux

package sse

import (
	"net"
	"time"
)

// boundSilence does nothing here: a peer that is gone without a word is noticed when the system's own patience ends.
func boundSilence(net.Conn, time.Duration) {}
