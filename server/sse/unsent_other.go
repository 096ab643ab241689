//go:build !linux

package sse

import "net"

// hasUnsent reports true: the system does not tell.
func hasUnsent(net.Conn) bool { return true }
