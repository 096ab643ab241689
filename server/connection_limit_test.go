package server

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"kontor/locales"
)

// feed is a listener that returns what it is given, in that order.
type feed struct {
	next   []any // net.Conn or error
	closed chan struct{}
}

func (f *feed) Accept() (net.Conn, error) {
	if len(f.next) == 0 {
		<-f.closed
		return nil, net.ErrClosed
	}
	next := f.next[0]
	f.next = f.next[1:]
	if err, ok := next.(error); ok {
		return nil, err
	}
	return next.(net.Conn), nil
}

func (f *feed) Close() error   { close(f.closed); return nil }
func (f *feed) Addr() net.Addr { return &net.TCPAddr{} }

// from is a connection from an address that remembers what was written to it.
type from struct {
	net.Conn
	address string
	written bytes.Buffer
	closed  bool
}

func (c *from) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(c.address), 1234))
}
func (c *from) Write(p []byte) (int, error) { return c.written.Write(p) }
func (c *from) SetDeadline(time.Time) error { return nil }
func (c *from) Close() error                { c.closed = true; return nil }
func loopback(a netip.Addr) bool            { return a.IsLoopback() }
func newFeed(next ...any) *feed             { return &feed{next: next, closed: make(chan struct{})} }
func newQuietLimiter(l net.Listener, max int) *connectionLimiter {
	return newConnectionLimiter(l, max, loopback, []byte("busy"), &connectionMetrics{}, slog.New(slog.DiscardHandler))
}

func TestConnectionLimiter_SurvivesFailedAccepts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failures []any
		for _, no := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED, syscall.ENOBUFS, syscall.EPERM, syscall.EMFILE, syscall.EMFILE, syscall.EMFILE, syscall.EMFILE, syscall.EMFILE} {
			failures = append(failures, &net.OpError{Op: "accept", Err: no})
		}
		g := newQuietLimiter(newFeed(append(failures, &from{address: "192.0.2.1"})...), 10)
		began := time.Now()
		if _, err := g.Accept(); err != nil {
			t.Fatalf("a failed accept ended the listener: %v", err)
		}
		if took := time.Since(began); took < time.Second || took > 10*time.Second {
			t.Errorf("10 failures in a row were paused over for %v", took)
		}
		ended := make(chan error)
		go func() { _, err := g.Accept(); ended <- err }()
		synctest.Wait()
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("a closed listener returned %v", err)
		}
	})
}

func TestConnectionLimiter_CloseEndsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failing := newFeed()
		for range 1000 {
			failing.next = append(failing.next, &net.OpError{Op: "accept", Err: syscall.EMFILE})
		}
		g := newQuietLimiter(failing, 10)
		ended := make(chan error)
		go func() { _, err := g.Accept(); ended <- err }()
		time.Sleep(time.Minute)
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

func TestConnectionLimiter_LimitsEachNetwork(t *testing.T) {
	const limit = 100
	var feedIn []any
	count := map[string]int{}
	for _, address := range []string{"192.0.2.1", "2001:db8::1", "2001:db8:0:2::2", "::ffff:192.0.2.1", "127.0.0.1", "198.51.100.9"} {
		for range 30 {
			feedIn = append(feedIn, &from{address: address})
		}
	}
	all := append([]any(nil), feedIn...)
	g := newQuietLimiter(newFeed(append(feedIn, &from{address: "203.0.113.7"})...), limit)
	var open []net.Conn
	for {
		connection, err := g.Accept()
		if err != nil {
			t.Fatal(err)
		}
		address := connection.RemoteAddr().(*net.TCPAddr).IP.String()
		if address == "203.0.113.7" {
			t.Fatal("a connection beyond the limit was accepted")
		}
		open = append(open, connection)
		count[address]++
		if len(open) == limit {
			break
		}
	}
	// A quarter for each network: one IPv4 address, also when it is written as IPv6, and one /48. Loopback has no share.
	if count["192.0.2.1"] != 25 || count["2001:db8::1"]+count["2001:db8:0:2::2"] != 25 || count["127.0.0.1"] != 30 || count["198.51.100.9"] != 20 {
		t.Errorf("accepted %v", count)
	}
	refused := 0
	for _, c := range all {
		if c := c.(*from); c.closed {
			refused++
			if c.written.String() != "busy" {
				t.Errorf("a surplus connection got %q", c.written.String())
			}
		}
	}
	if refused != 70 { // the rest of the 180 is still waiting
		t.Errorf("%d connections were rejected", refused)
	}
	for _, connection := range open {
		_ = connection.Close()
		_ = connection.Close() // counts once
	}
	if g.open != 0 || len(g.networks) != 0 {
		t.Errorf("after all were closed %d are open, in %d networks", g.open, len(g.networks))
	}
}

func TestConnectionLimiter_SurplusClientsReadTheAnswer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := newConnectionLimiter(listener, 1, loopback, (&Server{Options: Options{Texts: locales.Lazy()}}).overloaded(), &connectionMetrics{}, slog.New(slog.DiscardHandler))
	defer g.Close()
	accepted := make(chan net.Conn, 3)
	go func() {
		for {
			connection, err := g.Accept()
			if err != nil {
				return
			}
			accepted <- connection
		}
	}()
	first, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	held := <-accepted
	second, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Write([]byte("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(second)
	second.Close()
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 503 ") || !strings.Contains(string(answer), "\r\nRetry-After: ") {
		t.Errorf("got %q, %v", answer, err)
	}
	held.Close()
	third, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer third.Close()
	(<-accepted).Close() // a connection is available again
}

func TestConnectionsFor(t *testing.T) {
	for files, want := range map[int]int{0: 8, 16: 8, 64: 16, 100: 52, 128: 80, 256: 192, 1024: 896, 4096: 3968, 65536: maxConnections, 1 << 30: maxConnections} {
		if got := connectionsFor(files); got != want {
			t.Errorf("%d files: %d connections, want %d", files, got, want)
		}
	}
	if files := fileLimit(); files < 64 {
		t.Errorf("the limit of open files is %d", files)
	}
}

// Event streams send to the socket of a connection. With TLS they must not: they recognize it by NetConn.
func TestConnectionLimiter_ShowsTheSocketOfAConnection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	limiter := newQuietLimiter(listener, 10)
	defer limiter.Close()
	for _, c := range []struct {
		net.Listener
		secure bool
	}{{limiter, false}, {tlsListener{limiter, &tls.Config{}}, true}} {
		client, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		connection, err := c.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		_, socket := connection.(syscall.Conn)
		_, secure := connection.(interface{ NetConn() net.Conn })
		if socket == c.secure || secure != c.secure {
			t.Errorf("TLS %t: socket %t, connection below %t", c.secure, socket, secure)
		}
	}
}
