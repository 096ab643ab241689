package sse

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// ways are the ways in which a client ends its connection.
var ways = map[string]func(plain *net.TCPConn, client net.Conn) error{
	"close":             func(_ *net.TCPConn, client net.Conn) error { return client.Close() },
	"close of TCP only": func(plain *net.TCPConn, _ net.Conn) error { return plain.Close() },
	"reset": func(plain *net.TCPConn, _ net.Conn) error {
		return errors.Join(plain.SetLinger(0), plain.Close())
	},
	"end of its data": func(_ *net.TCPConn, client net.Conn) error {
		return client.(interface{ CloseWrite() error }).CloseWrite()
	},
	"too many bytes": func(_ *net.TCPConn, client net.Conn) error {
		_, err := client.Write(make([]byte, maxReceived))
		return err
	},
	"some bytes and then the end": func(_ *net.TCPConn, client net.Conn) error {
		_, err := client.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
		return errors.Join(err, client.Close())
	},
}

func TestPoller_NoticesTheEndOfAConnection(t *testing.T) {
	for way, end := range ways {
		for _, secure := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, TLS %t", way, secure), func(t *testing.T) {
				p := newPolled(t)
				plainServer, plainClient := pair(t)
				server, client := secured(t, secure, plainServer, plainClient)
				p.attach("a", server)
				p.send("a", "one\n")
				expect(t, client, "one\n")
				if p.watched() != 1 {
					t.Fatal("the poller does not watch the connection")
				}
				if err := end(plainClient, client); err != nil {
					t.Fatal(err)
				}
				<-p.ends
				if stats := p.Stats(); stats.Open != 0 || stats.Left != 1 || p.watched() != 0 {
					t.Errorf("got %+v, %d watched", stats, p.watched())
				}
			})
		}
	}
}

// A client that sends something keeps its stream. From then on a goroutine reads its connection.
func TestPoller_KeepsAStreamWhoseClientSendsBytes(t *testing.T) {
	for _, secure := range []bool{false, true} {
		p := newPolled(t)
		plainServer, plainClient := pair(t)
		server, client := secured(t, secure, plainServer, plainClient)
		p.attach("a", server)
		for i := range 3 {
			if _, err := client.Write([]byte("hello")); err != nil {
				t.Fatal(err)
			}
			p.send("a", fmt.Sprintln(i))
			expect(t, client, fmt.Sprintln(i))
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		<-p.ends
		if stats := p.Stats(); stats.Open != 0 || stats.Left != 1 || p.watched() != 0 {
			t.Errorf("TLS %t: got %+v, %d watched", secure, stats, p.watched())
		}
	}
}

func TestPoller_NeedsNoGoroutineForAStream(t *testing.T) {
	p := newPolled(t)
	server, _ := pair(t)
	p.attach("first", server) // starts the poller
	before := runtime.NumGoroutine()
	const streams = 100
	for range streams {
		server, _ := pair(t)
		p.attach("a", server)
	}
	if more := runtime.NumGoroutine() - before; more > streams/10 {
		t.Errorf("%d goroutines for %d streams", more, streams)
	}
	if p.watched() != streams+1 {
		t.Errorf("%d are watched", p.watched())
	}
}

// Clients end their connections in all ways while frames are written, rights are revoked and streams open.
func TestPoller_FreesManyConnectionsAtOnce(t *testing.T) {
	p := newPolled(t)
	const each = 30
	var group sync.WaitGroup
	streams := 0
	for way, end := range ways {
		for i := range each {
			server, client := pair(t)
			streams++
			group.Go(func() {
				s := p.attach(way, server)
				go func() { _, _ = io.Copy(io.Discard, client) }()
				switch i % 3 {
				case 0:
					p.send(way, "a frame\n")
				case 1:
					p.Revoke(way, func(other *Stream) bool { return other != s })
				}
				_ = end(client, client) // the server may have closed it
			})
		}
	}
	group.Wait()
	for range streams {
		<-p.ends
	}
	stats := p.Stats()
	if stats.Open != 0 || stats.Left+stats.Revoked != uint64(streams) || p.watched() != 0 {
		t.Errorf("got %+v, %d watched", stats, p.watched())
	}
}

// The number of a connection is used again as soon as it is closed. The end of the old client must not end the new stream.
func TestPoller_TellsConnectionsApartWhoseNumbersAreUsedAgain(t *testing.T) {
	p := newPolled(t)
	for range 50 {
		server, client := pair(t)
		old := p.attach("old", server)
		old.End()
		<-p.ends
		next, nextClient := pair(t)
		p.attach("next", next)
		_ = client.Close()
		p.send("next", "still here\n")
		expect(t, nextClient, "still here\n")
		if err := nextClient.Close(); err != nil {
			t.Fatal(err)
		}
		if user := <-p.ends; user != "next" {
			t.Fatalf("the stream of %q has ended", user)
		}
	}
	if p.watched() != 0 {
		t.Errorf("%d are still watched", p.watched())
	}
}

// Connections that cannot be watched have a goroutine.
func TestPoller_LeavesOtherConnectionsToGoroutines(t *testing.T) {
	for name, connect := range map[string]func(p *polled) (server, client net.Conn){
		"a connection without a number": func(*polled) (server, client net.Conn) { return net.Pipe() },
		"a system without epolls": func(p *polled) (server, client net.Conn) {
			p.poller.mu.Lock()
			p.poller.started = true
			p.poller.mu.Unlock()
			return pair(t)
		},
		"a limit of open files": func(p *polled) (server, client net.Conn) {
			server, client = pair(t)
			var before syscall.Rlimit
			if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: before.Max}); err != nil {
				t.Fatal(err)
			}
			p.poller.mu.Lock()
			p.poller.start()
			p.poller.mu.Unlock()
			if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
				t.Fatal(err)
			}
			return server, client
		},
	} {
		p := newPolled(t)
		server, client := connect(p)
		p.attach("a", server)
		if p.watched() != 0 {
			t.Errorf("%s: the poller watches it", name)
		}
		p.send("a", "one\n")
		expect(t, client, "one\n")
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		<-p.ends
		if stats := p.Stats(); stats.Open != 0 || stats.Left != 1 {
			t.Errorf("%s: got %+v", name, stats)
		}
	}
}

func TestPoller_EndsAStreamWhoseConnectionIsClosedBefore(t *testing.T) {
	p := newPolled(t)
	server, _ := pair(t)
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	p.attach("a", server)
	<-p.ends
	if stats := p.Stats(); stats.Open != 0 || stats.Left != 1 || p.watched() != 0 {
		t.Errorf("got %+v, %d watched", stats, p.watched())
	}
}

// Streams that open while the hub closes are closed, too.
func TestPoller_ClosesWhileStreamsOpen(t *testing.T) {
	for range 20 {
		p := newPolled(t)
		var group sync.WaitGroup
		for range 8 {
			server, client := pair(t)
			s, err := p.Open("a", "en", time.Time{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			group.Go(func() { s.Attach(server) })
			group.Go(func() { _, _ = io.Copy(io.Discard, client) }) // ends with the connection
		}
		group.Go(p.Close)
		group.Wait()
		if stats := p.Stats(); stats.Open != 0 || p.watched() != 0 {
			t.Fatalf("got %+v, %d watched", stats, p.watched())
		}
	}
}
