package server

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"kontor/store/testenv"
)

// timedPair returns a connection over the loopback interface and its other end.
func timedPair(t *testing.T) (*timedTCP, net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	peer, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close(); accepted.Close() })
	return &timedTCP{TCPConn: accepted.(*net.TCPConn)}, peer
}

func readByte(c io.Reader) error {
	_, err := c.Read(make([]byte, 1))
	return err
}

// waitForRead returns when a read is running.
func (c *timedTCP) waitForRead() {
	for reading := 0; reading == 0; runtime.Gosched() {
		c.mu.Lock()
		reading = c.reading
		c.mu.Unlock()
	}
}

// must stops the test if a deadline cannot be set.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTimedTCP_EndsReads(t *testing.T) {
	const soon = 20 * time.Millisecond
	in := func(d time.Duration) time.Time { return time.Now().Add(d) }
	for name, c := range map[string]struct {
		before func(c *timedTCP) error // the read
		during func(c *timedTCP) error
	}{
		"a deadline":         {before: func(c *timedTCP) error { return c.SetReadDeadline(in(soon)) }},
		"of both directions": {before: func(c *timedTCP) error { return c.SetDeadline(in(soon)) }},
		"the last of two": {before: func(c *timedTCP) error {
			return errors.Join(c.SetReadDeadline(in(time.Hour)), c.SetReadDeadline(in(soon)))
		}},
		"one that has passed":       {before: func(c *timedTCP) error { return c.SetReadDeadline(time.Unix(1, 0)) }},
		"during a read":             {during: func(c *timedTCP) error { return c.SetReadDeadline(in(soon)) }},
		"one that passed meanwhile": {during: func(c *timedTCP) error { return c.SetReadDeadline(time.Unix(1, 0)) }},
		"a shorter one": {
			before: func(c *timedTCP) error { return c.SetReadDeadline(in(time.Hour)) },
			during: func(c *timedTCP) error { return c.SetReadDeadline(in(soon)) },
		},
		"a slightly shorter one": {
			before: func(c *timedTCP) error { return c.SetReadDeadline(in(soon + time.Millisecond)) },
			during: func(c *timedTCP) error { return c.SetReadDeadline(in(soon)) },
		},
	} {
		for kind, read := range map[string]func(*timedTCP) error{
			"Read":    func(c *timedTCP) error { return readByte(c) },
			"WriteTo": func(c *timedTCP) error { _, err := c.WriteTo(io.Discard); return err },
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				connection, _ := timedPair(t)
				if c.before != nil {
					must(t, c.before(connection))
				}
				ended := make(chan error)
				go func() { ended <- read(connection) }()
				if c.during != nil {
					connection.waitForRead()
					must(t, c.during(connection))
				}
				if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("the read returned %v", err)
				}
				if err := readByte(connection); !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("a read after the deadline returned %v", err)
				}
			})
		}
	}
}

// A sender of single bytes does not postpone the deadline.
func TestTimedTCP_EndsReadsOfASlowSender(t *testing.T) {
	connection, peer := timedPair(t)
	go func() {
		for err := error(nil); err == nil; {
			_, err = peer.Write([]byte{0})
		}
	}()
	at := time.Now().Add(20 * time.Millisecond)
	must(t, connection.SetReadDeadline(at))
	for err := error(nil); !errors.Is(err, os.ErrDeadlineExceeded); {
		if err = readByte(connection); err == nil && time.Since(at) > testenv.Limit() {
			t.Fatal("the deadline had no effect")
		}
	}
	if early := time.Until(at); early > 0 {
		t.Errorf("the deadline came %s early", early)
	}
}

func TestTimedTCP_ReadsAfterALaterDeadline(t *testing.T) {
	for name, at := range map[string]time.Time{"later": time.Now().Add(time.Hour), "none": {}} {
		t.Run(name, func(t *testing.T) {
			connection, peer := timedPair(t)
			must(t, connection.SetReadDeadline(time.Now().Add(-time.Second)))
			if err := readByte(connection); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("the read returned %v", err)
			}
			must(t, connection.SetReadDeadline(at))
			ended := make(chan error)
			go func() { ended <- readByte(connection) }()
			connection.waitForRead()
			if _, err := peer.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil {
				t.Errorf("the read returned %v", err)
			}
			if connection.readBy != at {
				t.Errorf("the deadline is %v, want %v", connection.readBy, at)
			}
		})
	}
}

func TestTimedTCP_EndsWrites(t *testing.T) {
	connection, _ := timedPair(t)
	flood := func() error {
		_, err := io.Copy(struct{ io.Writer }{connection}, strings.NewReader(strings.Repeat("x", 32<<20)))
		return err
	}
	must(t, connection.SetWriteDeadline(time.Now().Add(time.Hour)))
	ended := make(chan error)
	go func() { ended <- flood() }()
	must(t, connection.SetWriteDeadline(time.Now().Add(20*time.Millisecond)))
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a write to a client that does not read returned %v", err)
	}
	if _, err := connection.ReadFrom(strings.NewReader("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a write after the deadline returned %v", err)
	}
	must(t, connection.SetWriteDeadline(time.Time{}))
	if !connection.writeBy.IsZero() {
		t.Errorf("the deadline of writes is %v", connection.writeBy)
	}
}

func TestTimedTCP_CloseEndsARead(t *testing.T) {
	connection, _ := timedPair(t)
	ended := make(chan error)
	go func() { ended <- readByte(connection) }()
	connection.waitForRead()
	must(t, connection.Close())
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("the read returned %v", err)
	}
	_ = connection.SetReadDeadline(time.Now().Add(time.Hour)) // may succeed: nothing is read
	if err := readByte(connection); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a later read returned %v", err)
	}
}

// The engine asks for three deadlines in each request.
func TestTimedTCP_SetsFewDeadlines(t *testing.T) {
	const requests = 1000
	connection, peer := timedPair(t)
	set := 0
	for range requests {
		before := [2]time.Time{connection.readBy, connection.writeBy}
		must(t, connection.SetReadDeadline(time.Now().Add(idleTimeout)))
		if _, err := peer.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := readByte(connection); err != nil {
			t.Fatal(err)
		}
		must(t, connection.SetReadDeadline(time.Now().Add(readTimeout)))
		must(t, connection.SetWriteDeadline(time.Now().Add(writeTimeout)))
		if connection.readBy != before[0] {
			set++
		}
		if connection.writeBy != before[1] {
			set++
		}
	}
	if set < 2 || set > requests/10 {
		t.Errorf("%d deadlines were set for %d requests", set, requests)
	}
}

// Deadlines, reads and the end come from several goroutines, as for an event stream. The race detector checks the rest.
func TestTimedTCP_MayBeUsedConcurrently(t *testing.T) {
	connection, peer := timedPair(t)
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for i := range 200 {
				at := time.Now().Add(time.Duration(i+1) * time.Minute)
				_, _ = connection.SetReadDeadline(at), connection.SetWriteDeadline(at)
				_ = connection.SetDeadline(time.Time{})
			}
		})
	}
	running.Go(func() {
		if n, err := io.Copy(io.Discard, struct{ io.Reader }{connection}); n != 1000 || err != nil {
			t.Errorf("read %d bytes, %v", n, err)
		}
	})
	for range 1000 {
		if _, err := peer.Write([]byte("x")); err != nil {
			t.Error(err)
		}
	}
	must(t, peer.(*net.TCPConn).CloseWrite())
	running.Wait()
	must(t, connection.SetWriteDeadline(time.Unix(1, 0)))
	must(t, connection.Close())
}
