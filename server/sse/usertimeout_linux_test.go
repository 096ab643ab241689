package sse_test

import (
	"net"
	"syscall"
	"testing"
	"time"

	"kontor/server/sse"
)

func TestAttach_BoundsHowLongAPeerMayBeSilent(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	h := newHub(sse.Options{})
	defer h.Close()
	s, err := h.Open("a", "de", time.Time{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Attach(server)
	raw, err := server.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		const userTimeout = 0x12
		if ms, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, userTimeout); err != nil || ms != int(heartbeat.Milliseconds()) {
			t.Errorf("got %d ms, %v, want one heartbeat", ms, err)
		}
	}); err != nil {
		t.Fatal(err)
	}
}
