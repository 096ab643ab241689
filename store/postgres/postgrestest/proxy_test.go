package postgrestest_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"kontor/store/postgres/postgrestest"
)

// echo runs a server that answers each line with the same line, and returns its address.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go io.Copy(c, c)
		}
	}()
	return l.Addr().String()
}

func addressOf(p *postgrestest.Proxy) string {
	_, address, _ := strings.Cut(p.Through("postgres://kontor@nowhere:1"), "@")
	return address
}

// dial connects through a proxy.
func dial(t *testing.T, p *postgrestest.Proxy) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", addressOf(p))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, bufio.NewReader(c)
}

// say sends a line and reads the answer until the deadline; without one it waits.
func say(c net.Conn, r *bufio.Reader, line string, deadline time.Time) (string, error) {
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return "", err
	}
	if err := c.SetReadDeadline(deadline); err != nil {
		return "", err
	}
	got, err := r.ReadString('\n')
	return strings.TrimSpace(got), err
}

func expectEcho(t *testing.T, c net.Conn, r *bufio.Reader) {
	t.Helper()
	if got, err := say(c, r, "hello", time.Time{}); got != "hello" || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
}

func TestProxy_Delays(t *testing.T) {
	p := postgrestest.NewProxy(t, echo(t))
	c, r := dial(t, p)
	expectEcho(t, c, r)
	p.Delay(20 * time.Millisecond)
	began := time.Now()
	expectEcho(t, c, r)
	if took := time.Since(began); took < 40*time.Millisecond {
		t.Errorf("a round trip took %v", took)
	}
}

func TestProxy_CutsAndRefuses(t *testing.T) {
	p := postgrestest.NewProxy(t, echo(t))
	c, r := dial(t, p)
	expectEcho(t, c, r)
	p.Refuse(true)
	expectEcho(t, c, r)
	p.Cut()
	if got, err := say(c, r, "hello", time.Time{}); err == nil {
		t.Errorf("a cut connection answered %q", got)
	}
	if refused, err := net.Dial("tcp", addressOf(p)); err == nil { // it may be reset during or after the handshake
		defer refused.Close()
		if got, err := say(refused, bufio.NewReader(refused), "hello", time.Time{}); err == nil {
			t.Errorf("a refused connection answered %q", got)
		}
	}
	p.Refuse(false)
	expectNewEcho(t, p)
	if got := p.Opened(); got != 2 {
		t.Errorf("%d connections, want 2", got)
	}
}

func expectNewEcho(t *testing.T, p *postgrestest.Proxy) {
	t.Helper()
	c, r := dial(t, p)
	expectEcho(t, c, r)
}

func TestProxy_HoldsAndReleases(t *testing.T) {
	p := postgrestest.NewProxy(t, echo(t))
	c, r := dial(t, p)
	expectEcho(t, c, r)
	for name, hold := range map[string]func(){"both": p.Hold, "answers": p.HoldAnswers} {
		hold()
		if _, err := say(c, r, "held", time.Now().Add(20*time.Millisecond)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("%s: got %v, want silence", name, err)
		}
		p.Release()
		if got, err := say(c, r, "later", time.Time{}); got != "held" || err != nil {
			t.Fatalf("%s: got %q, %v, want what was held", name, got, err)
		}
		if got, err := r.ReadString('\n'); got != "later\n" || err != nil {
			t.Fatalf("%s: got %q, %v", name, got, err)
		}
	}
}

func TestProxy_LeavesTheClientOfAHalfOpenConnectionAlone(t *testing.T) {
	p := postgrestest.NewProxy(t, echo(t))
	c, r := dial(t, p)
	expectEcho(t, c, r)
	p.HalfOpen()
	for range 3 {
		if _, err := say(c, r, "anybody there", time.Now().Add(20*time.Millisecond)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("got %v, want silence", err)
		}
	}
	expectNewEcho(t, p)
}
