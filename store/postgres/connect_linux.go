package postgres

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// boundSending makes a connection fail when the other end does not confirm what was sent.
func boundSending(network, _ string, raw syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unacknowledged.Milliseconds()))
	})
	if err == nil {
		err = failed
	}
	return err
}
