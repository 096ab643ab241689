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
)

// TestWatchdog_IsSilentWhileTheProcessIsFrozen runs the program as systemd does, with a notification socket.
func TestWatchdog_IsSilentWhileTheProcessIsFrozen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	const interval = 100 * time.Millisecond // a third of the watchdog's time
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
		if got, err := next(time.Minute); err != nil || got != want {
			t.Fatalf("%s: got %q, %v, want %q", when, got, err, want)
		}
	}
	p := systemtest.StartWith(t, append([]string{"NOTIFY_SOCKET=" + path, "WATCHDOG_USEC=300000"}, systemtest.SecretsEnv...), "--data.dir", filepath.Join(t.TempDir(), "data"))
	expect("once it listens", "READY=1")
	for range 3 {
		expect("while it runs", "WATCHDOG=1")
	}
	if err := p.Cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	silent := false
	for range 5 { // messages from before it was stopped may follow
		if _, err := next(5 * interval); errors.Is(err, os.ErrDeadlineExceeded) {
			silent = true
			break
		}
	}
	if !silent {
		t.Error("a frozen process sends keep-alive messages")
	}
	if err := p.Cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	expect("when it continues", "WATCHDOG=1")
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for state := ""; state != "STOPPING=1"; {
		if state, err = next(time.Minute); err != nil {
			t.Fatalf("at the end: %v", err)
		}
	}
}
