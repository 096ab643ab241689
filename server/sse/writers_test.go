package sse

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// openPiped opens a live stream and returns its client.
func openPiped(t *testing.T, h *Hub, user string) (client net.Conn) {
	t.Helper()
	s, err := h.Open(user, "de", time.Time{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	server, client := net.Pipe()
	s.Attach(server)
	s.Live(Position{})
	return client
}

func TestQueue_DoesNotGrowWhileItIsNeverEmpty(t *testing.T) {
	var q queue
	q.init()
	streams := make([]*Stream, 3*streamsAtOnce)
	for i := range streams {
		streams[i] = &Stream{User: fmt.Sprint(i)}
	}
	q.add(streams...)
	next := 0
	for range 1000 {
		taken := q.take(nil)
		if len(taken) != streamsAtOnce {
			t.Fatalf("took %d, want %d", len(taken), streamsAtOnce)
		}
		for _, s := range taken { // in the order in which they were added
			if want := fmt.Sprint(next % len(streams)); s.User != want {
				t.Fatalf("took %s, want %s", s.User, want)
			}
			next++
		}
		q.add(taken...)
	}
	if n := cap(q.list); n > 20*streamsAtOnce {
		t.Errorf("the queue has %d entries for %d streams", n, len(streams))
	}
	if waiting := q.list[q.next:]; len(waiting) != len(streams) || slices.Contains(waiting, nil) {
		t.Errorf("%d of %d streams wait", len(waiting), len(streams))
	}
	if taken := q.list[:q.next]; slices.ContainsFunc(taken, func(s *Stream) bool { return s != nil }) {
		t.Error("the queue keeps streams that were taken")
	}
}

// A panic ends the stream whose frames caused it. The others that its writer had taken get their frames from the next one.
func TestWriter_APanicEndsOneStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var armed atomic.Bool
		h := New(Options{Heartbeat: time.Hour, PerUser: 100, Now: time.Now, Log: slog.New(slog.DiscardHandler), MayWrite: func() bool {
			if armed.CompareAndSwap(true, false) {
				panic("a fault")
			}
			return true
		}})
		defer h.Close()
		const streams = 3 * streamsAtOnce
		var mu sync.Mutex
		var got []string
		for range streams {
			client := openPiped(t, h, "a")
			go func() {
				for lines := bufio.NewScanner(client); lines.Scan(); {
					mu.Lock()
					got = append(got, lines.Text())
					mu.Unlock()
				}
			}()
		}
		armed.Store(true)
		for n := range 2 {
			h.Publish([]string{"a"}, func(int, *Stream) Frame {
				return Frame{Position: Position{At: int64(n + 1)}, Shared: fmt.Appendln(nil, n)}
			})
			time.Sleep(time.Second)
			synctest.Wait()
		}
		mu.Lock()
		defer mu.Unlock()
		if stats := h.Stats(); stats.Open != streams-1 || stats.Frames != 2*(streams-1) {
			t.Errorf("got %+v", stats)
		}
		slices.Sort(got)
		if want := slices.Concat(slices.Repeat([]string{"0"}, streams-1), slices.Repeat([]string{"1"}, streams-1)); !slices.Equal(got, want) {
			t.Errorf("got %d lines, want %d", len(got), len(want))
		}
	})
}

// Everything that was written is reported before the hub counts as drained. Frames that no client received are not reported.
func TestWriter_ReportsWhatWasWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		wrote := map[Position]bool{}
		h := New(Options{Heartbeat: time.Hour, PerUser: 100, Now: time.Now, Log: slog.New(slog.DiscardHandler), CloseFrame: []byte("bye\n"),
			Wrote: func(positions []Position) {
				mu.Lock()
				defer mu.Unlock()
				for _, p := range positions {
					wrote[p] = true
				}
				clear(positions) // the slice belongs to the writer
			}})
		defer h.Close()
		clients := map[string]net.Conn{}
		for i := range 2 * streamsAtOnce {
			user := fmt.Sprint("user ", i)
			client := openPiped(t, h, user)
			clients[user] = client
			if i > 0 { // the first does not read
				go func() {
					for lines := bufio.NewScanner(client); lines.Scan(); {
					}
				}()
			}
		}
		for n := range 3 {
			for user := range clients {
				h.Publish([]string{user}, func(int, *Stream) Frame {
					return Frame{Position: Position{At: int64(n + 1), ID: user}, Shared: []byte("frame\n")}
				})
			}
		}
		h.Drain()
		<-h.Drained()
		mu.Lock()
		defer mu.Unlock()
		if want := 3 * (len(clients) - 1); len(wrote) != want {
			t.Errorf("%d positions were reported, want %d", len(wrote), want)
		}
		if wrote[Position{At: 1, ID: "user 0"}] {
			t.Error("a frame that its client has not read was reported")
		}
		if stats := h.Stats(); stats.Slow != 1 || stats.Open != 0 {
			t.Errorf("got %+v", stats)
		}
	})
}
