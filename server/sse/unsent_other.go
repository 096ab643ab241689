//go:build !linux

package sse

import "net"

// hasUnsent returns true: the system provides no such information.
func hasUnsent(net.Conn) bool { return true }
