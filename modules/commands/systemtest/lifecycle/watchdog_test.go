//go:build linux

package lifecycle_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

// TestWatchdog_IsSilentWhileTheProcessIsFrozen runs the program as systemd does, with a notification socket.
func TestWatchdog_IsSilentWhileTheProcessIsFrozen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	next := func(timeout time.Duration) (string, error) {
		if err := socket.SetReadDeadline(time.Now().Add(timeout)); err != nil {
			t.Fatal(err)
		}
		state := make([]byte, 100)
		n, err := socket.Read(state)
		return string(state[:n]), err
	}
	expect := func(when, want string) {
		t.Helper()
		if got, err := next(testenv.Limit()); err != nil || got != want {
			t.Fatalf("%s: got %q, %v, want %q", when, got, err, want)
		}
	}
	p := systemtest.StartWith(t, append([]string{"NOTIFY_SOCKET=" + path, "WATCHDOG_USEC=300000"}, systemtest.SecretsEnv...), "--data.dir", filepath.Join(t.TempDir(), "data"))
	expect("once it listens", "READY=1")
	for range 3 {
		expect("while it runs", "WATCHDOG=1")
	}
	p.Suspend()
	discardArrived(t, socket)
	const timeout = 300 * time.Millisecond // of the watchdog
	if state, err := next(timeout); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a frozen process sent %q, %v", state, err)
	}
	p.Signal(syscall.SIGCONT)
	expect("when it continues", "WATCHDOG=1")
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for state := ""; state != "STOPPING=1"; {
		if state, err = next(testenv.Limit()); err != nil {
			t.Fatalf("at the end: %v", err)
		}
	}
}

// discardArrived reads the messages that have arrived at a socket.
func discardArrived(t *testing.T, socket *net.UnixConn) {
	t.Helper()
	if err := socket.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for state := make([]byte, 100); err == nil; {
		if failed := raw.Read(func(fd uintptr) bool {
			_, _, err = syscall.Recvfrom(int(fd), state, syscall.MSG_DONTWAIT)
			return true
		}); failed != nil {
			t.Fatal(failed)
		}
	}
	if !errors.Is(err, syscall.EAGAIN) {
		t.Fatal(err)
	}
}
