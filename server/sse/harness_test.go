package sse_test

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kontor/server/sse"
)

const heartbeat = 25 * time.Second

func newHub(o sse.Options) *sse.Hub {
	if o.Heartbeat == 0 {
		o.Heartbeat = heartbeat
	}
	if o.PerUser == 0 {
		o.PerUser = 10
	}
	if o.Check == nil {
		o.Check = func(*sse.Stream) bool { return true }
	}
	o.Now, o.Log, o.CloseFrame = time.Now, slog.New(slog.DiscardHandler), sse.Event("", "close", []byte("bye"))
	return sse.New(o)
}

// withHub runs a test with a hub in a bubble, whose clock advances when all goroutines wait. It closes the hub afterwards.
func withHub(t *testing.T, o sse.Options, test func(t *testing.T, h *sse.Hub)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newHub(o)
		defer h.Close()
		test(t, h)
	})
}

// peer is the client's end of a stream.
type peer struct {
	net.Conn
	mu    sync.Mutex
	lines []string // that are not empty
	ended time.Time
	done  chan struct{} // closed at the end; nil if no goroutine waits for it
}

// read reads until the end.
func (p *peer) read() {
	scanner := bufio.NewScanner(p)
	for scanner.Scan() {
		if scanner.Text() != "" {
			p.mu.Lock()
			p.lines = append(p.lines, scanner.Text())
			p.mu.Unlock()
		}
	}
	p.mu.Lock()
	p.ended = time.Now()
	p.mu.Unlock()
	if p.done != nil {
		close(p.done)
	}
}

func (p *peer) got() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lines)
}

func (p *peer) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.ended.IsZero()
}

// open returns a live stream and its client.
func open(t *testing.T, h *sse.Hub, user, language string, expires time.Time) (*sse.Stream, *peer) {
	t.Helper()
	s, err := h.Open(user, language, expires, nil)
	if err != nil {
		t.Fatal(err)
	}
	server, client := net.Pipe()
	p := &peer{Conn: client}
	if !s.Attach(server) {
		t.Fatal("the stream had ended")
	}
	s.Live(sse.Position{})
	return s, p
}

func at(n int) sse.Position { return sse.Position{At: int64(n), ID: fmt.Sprint(n)} }

func publish(h *sse.Hub, n int, users ...string) {
	h.Publish(users, func(i int, s *sse.Stream) sse.Frame {
		return sse.Frame{Position: at(n), Own: []byte(users[i] + " " + s.Language + " "), Shared: fmt.Appendln(nil, n)}
	})
}
