package sse_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kontor/server/sse"
)

func TestStream_IsNotOpenedAfterItsEnd(t *testing.T) {
	withHub(t, sse.Options{}, func(t *testing.T, h *sse.Hub) {
		s, err := h.Open("a", "de", time.Time{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.End()
		server, client := net.Pipe()
		if s.Attach(server) {
			t.Error("it was attached")
		}
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the connection stays open: %v", err)
		}
	})
}

// table is what streams resume from: rows are published after they are in it.
type table struct {
	mu   sync.Mutex
	rows []int
}

func (b *table) add(h *sse.Hub, n int) {
	b.mu.Lock()
	b.rows = append(b.rows, n)
	b.mu.Unlock()
	publish(h, n, "a")
}

func (b *table) after(n int) []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.rows[n:])
}

// A stream that resumes at any time and position receives every later row once and in order.
func TestStream_ResumesWithoutGapAndWithoutRepetition(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		rows := rapid.IntRange(1, 60).Draw(r, "rows")
		starts := rapid.SliceOfN(rapid.IntRange(0, rows), 1, 6).Draw(r, "streams open at")
		h := newHub(sse.Options{Heartbeat: time.Hour})
		defer h.Close()
		var b table
		type resumed struct {
			from int
			*peer
		}
		var peers []resumed
		var resuming sync.WaitGroup
		for n := range rows {
			for _, start := range starts {
				if start != n {
					continue
				}
				from := rapid.IntRange(0, n).Draw(r, "from")
				s, err := h.Open("a", "de", time.Time{}, nil)
				if err != nil {
					r.Fatal(err)
				}
				server, client := net.Pipe()
				p := resumed{from, &peer{Conn: client, done: make(chan struct{})}}
				peers = append(peers, p)
				go p.read()
				resuming.Go(func() { catchUp(s, server, &b, from) })
			}
			b.add(h, n+1)
		}
		resuming.Wait()
		h.Drain()
		for _, p := range peers {
			var want []string
			for n := p.from + 1; n <= rows; n++ {
				want = append(want, fmt.Sprint("a de ", n))
			}
			<-p.done
			if got := p.got(); !slices.Equal(got, append(want, "event: close", "data: bye")) {
				r.Fatalf("from %d: got %q", p.from, strings.Join(got, ", "))
			}
		}
	})
}

// catchUp is how a stream is brought up to date.
func catchUp(s *sse.Stream, server net.Conn, b *table, from int) {
	s.Attach(server)
	for {
		newest := s.Newest()
		for _, n := range b.after(from) {
			if !s.Write(fmt.Appendf(nil, "a de %d\n", n)) {
				return
			}
			from = n
		}
		last := at(from)
		if newest.After(last) {
			last = newest
		}
		if s.Live(last) {
			return
		}
	}
}
