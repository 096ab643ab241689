package sse

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// polled is a hub on real connections, whose heartbeats never come: only the poller notices what clients do.
type polled struct {
	*Hub
	testing.TB
	ends chan string // users whose stream has ended
}

func newPolled(t testing.TB) *polled {
	t.Helper()
	p := &polled{TB: t, ends: make(chan string, 4096)}
	p.Hub = New(Options{Heartbeat: time.Hour, PerUser: 1 << 20, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		CloseFrame: []byte("bye\n"), Ended: func(user string) { p.ends <- user }})
	t.Cleanup(p.Close)
	return p
}

// loopback accepts the connections of all tests, which would otherwise need a port each.
var loopback = sync.OnceValues(func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") })

// pair returns both ends of a TCP connection.
func pair(t testing.TB) (server, client *net.TCPConn) {
	t.Helper()
	listener, err := loopback()
	if err != nil {
		t.Fatal(err)
	}
	dialled, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dialled.Close() })
	return accepted.(*net.TCPConn), dialled.(*net.TCPConn)
}

// overTLS returns both ends of a connection with TLS on a TCP connection.
func overTLS(t testing.TB, server, client net.Conn) (tlsServer, tlsClient *tls.Conn) {
	t.Helper()
	config := httptest.NewTLSServer(nil)
	defer config.Close()
	tlsServer = tls.Server(server, &tls.Config{Certificates: config.TLS.Certificates})
	tlsClient = tls.Client(client, &tls.Config{InsecureSkipVerify: true}) // the test's own certificate
	done := make(chan error)
	go func() { done <- tlsServer.Handshake() }()
	if err := errors.Join(tlsClient.Handshake(), <-done); err != nil {
		t.Fatal(err)
	}
	return tlsServer, tlsClient
}

// secured returns both ends of a connection: those with TLS on it if secure, otherwise its own.
func secured(t testing.TB, secure bool, server, client net.Conn) (net.Conn, net.Conn) {
	t.Helper()
	if secure {
		return overTLS(t, server, client)
	}
	return server, client
}

// attach opens a live stream on a connection.
func (p *polled) attach(user string, conn net.Conn) *Stream {
	p.Helper()
	s, err := p.Open(user, "en", time.Time{}, nil)
	if err != nil {
		p.Fatal(err)
	}
	if !s.Attach(conn) {
		p.Fatal("the stream had ended")
	}
	s.Live(Position{})
	return s
}

// send publishes a frame to a user.
func (p *polled) send(user, text string) {
	p.Publish([]string{user}, func(int, *Stream) Frame { return Frame{Shared: []byte(text)} })
}

// watched returns the number of streams that the poller watches.
func (p *polled) watched() int {
	p.poller.mu.Lock()
	defer p.poller.mu.Unlock()
	return len(p.poller.streams)
}

// expect reads a text.
func expect(t testing.TB, from io.Reader, text string) {
	t.Helper()
	got := make([]byte, len(text))
	if _, err := io.ReadFull(from, got); err != nil || string(got) != text {
		t.Errorf("got %q, %v, want %q", got, err, text)
	}
}
