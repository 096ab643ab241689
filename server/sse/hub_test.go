package sse_test

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kontor/server/sse"
)

func TestHub_DeliversFramesToStreamsOfTheirUsers(t *testing.T) {
	withHub(t, sse.Options{}, func(t *testing.T, h *sse.Hub) {
		_, a1 := open(t, h, "a", "de", time.Time{})
		_, a2 := open(t, h, "a", "fr", time.Time{})
		_, b := open(t, h, "b", "de", time.Time{})
		for _, p := range []*peer{a1, a2, b} {
			go p.read()
		}
		publish(h, 1, "a", "nobody")
		publish(h, 2, "b", "a")
		publish(h, 2, "a") // again
		synctest.Wait()
		for p, want := range map[*peer][]string{a1: {"a de 1", "a de 2"}, a2: {"a fr 1", "a fr 2"}, b: {"b de 2"}} {
			if got := p.got(); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		if s := h.Stats(); s.Open != 3 || s.Frames != 5 {
			t.Errorf("got %+v", s)
		}
	})
}

func TestHub_SendsKeepalives(t *testing.T) {
	withHub(t, sse.Options{}, func(t *testing.T, h *sse.Hub) {
		_, p := open(t, h, "a", "de", time.Time{})
		go p.read()
		time.Sleep(heartbeat - time.Second)
		synctest.Wait()
		if got := p.got(); len(got) != 0 {
			t.Errorf("too early: %q", got)
		}
		time.Sleep(9*heartbeat + 10*time.Second)
		synctest.Wait()
		got := p.got()
		if len(got) < 9 || len(got) > 10 || got[0] != ": keepalive" {
			t.Errorf("got %d in ten heartbeats: %q", len(got), got)
		}
	})
}

func TestHub_EndsStreamsThatAreNoLongerAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		allowed := true
		h := newHub(sse.Options{Check: func(*sse.Stream) bool { mu.Lock(); defer mu.Unlock(); return allowed }})
		defer h.Close()
		_, expiring := open(t, h, "a", "de", time.Now().Add(10*time.Second))
		_, revoked := open(t, h, "b", "de", time.Time{})
		go expiring.read()
		go revoked.read()
		time.Sleep(12 * time.Second)
		synctest.Wait()
		if !expiring.over() || revoked.over() {
			t.Errorf("expired token: over %t; other: over %t", expiring.over(), revoked.over())
		}
		mu.Lock()
		allowed = false
		mu.Unlock()
		time.Sleep(heartbeat)
		synctest.Wait()
		if !revoked.over() || len(revoked.got()) != 0 {
			t.Errorf("over %t with %q, want the end without a sign of life", revoked.over(), revoked.got())
		}
		if s := h.Stats(); s.Open != 0 || s.Revoked != 2 {
			t.Errorf("got %+v", s)
		}
	})
}

func TestHub_DropsAClientThatDoesNotRead(t *testing.T) {
	withHub(t, sse.Options{}, func(t *testing.T, h *sse.Hub) {
		for i := range 20 { // more than there are writers
			open(t, h, fmt.Sprint("deaf", i), "de", time.Time{})
		}
		_, good := open(t, h, "good", "de", time.Time{})
		go good.read()
		began := time.Now()
		for i := range 20 {
			publish(h, 1, fmt.Sprint("deaf", i))
		}
		publish(h, 1, "good")
		for len(good.got()) == 0 && time.Since(began) < time.Minute {
			time.Sleep(time.Millisecond)
		}
		if waited := time.Since(began); waited > 200*time.Millisecond {
			t.Errorf("the good client waited %s for the others", waited)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if s := h.Stats(); s.Open != 1 || s.Slow != 20 {
			t.Errorf("got %+v, want only the good one to be left", s)
		}
	})
}

func TestHub_DropsAClientWithTooManyPendingFrames(t *testing.T) {
	withHub(t, sse.Options{}, func(t *testing.T, h *sse.Hub) {
		open(t, h, "deaf", "de", time.Time{})
		publish(h, 1, "deaf")
		synctest.Wait() // a writer has that and comes no further: the rest waits
		for n := range 3000 {
			publish(h, n+2, "deaf")
		}
		synctest.Wait()
		if s := h.Stats(); s.Open != 0 || s.Slow != 1 {
			t.Errorf("got %+v", s)
		}
	})
}

func TestHub_ContinuesWithASlowClient(t *testing.T) {
	withHub(t, sse.Options{}, func(t *testing.T, h *sse.Hub) {
		_, p := open(t, h, "a", "de", time.Time{})
		publish(h, 1, "a")
		time.Sleep(time.Second) // the writer has given it to another goroutine
		publish(h, 2, "a")
		publish(h, 3, "a")
		go p.read()
		synctest.Wait()
		if got := p.got(); !slices.Equal(got, []string{"a de 1", "a de 2", "a de 3"}) {
			t.Errorf("got %q", got)
		}
	})
}

func TestHub_SendsTheCloseFrameAfterPendingFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(sse.Options{})
		_, p := open(t, h, "a", "de", time.Time{})
		pending, err := h.Open("b", "de", time.Time{}, nil) // still being brought up to date
		if err != nil {
			t.Fatal(err)
		}
		server, client := net.Pipe()
		late := &peer{Conn: client}
		pending.Attach(server)
		go p.read()
		go late.read()
		publish(h, 1, "a")
		h.Drain()
		publish(h, 2, "a")
		if _, err := h.Open("c", "de", time.Time{}, nil); !errors.Is(err, sse.ErrDraining) {
			t.Errorf("a new stream: got %v", err)
		}
		if !pending.Live(sse.Position{}) {
			t.Error("the late one may not end its replay")
		}
		<-h.Drained()
		synctest.Wait()
		bye := []string{"event: close", "data: bye"}
		if got := p.got(); !slices.Equal(got, append([]string{"a de 1"}, bye...)) || !p.over() {
			t.Errorf("got %q", got)
		}
		if got := late.got(); !slices.Equal(got, bye) || !late.over() {
			t.Errorf("the late one: got %q", got)
		}
		h.Close()
		h.Close()
	})
}

func TestHub_ReleasesMemoryAfterManyStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var released atomic.Int64
		h := newHub(sse.Options{PerUser: 5000, Release: func() { released.Add(1) }})
		defer h.Close()
		openSome := func(n int) {
			for range n {
				if _, err := h.Open("a", "de", time.Time{}, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i, step := range []struct {
			streams int
			wait    time.Duration
			want    int64
		}{{999, time.Minute, 0}, {1, 2 * time.Second, 0}, {1, 2 * time.Second, 0}, {0, 3 * time.Second, 1}, {0, time.Hour, 1}, {1000, 5 * time.Second, 2}} {
			openSome(step.streams)
			time.Sleep(step.wait)
			synctest.Wait()
			if got := released.Load(); got != step.want {
				t.Errorf("step %d: released %d times, want %d", i, got, step.want)
			}
		}
	})
}

func TestHub_LimitsStreamsAndDropsUnattachedOnes(t *testing.T) {
	withHub(t, sse.Options{PerUser: 2}, func(t *testing.T, h *sse.Hub) {
		_, p := open(t, h, "a", "de", time.Time{})
		if _, err := h.Open("a", "de", time.Time{}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Open("a", "de", time.Time{}, nil); !errors.Is(err, sse.ErrTooMany) {
			t.Errorf("the third: got %v", err)
		}
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if s := h.Stats(); s.Open != 1 || s.Refused != 1 {
			t.Errorf("got %+v, want the one without a connection to be forgotten", s)
		}
		_ = p.Close()
		synctest.Wait()
		if s := h.Stats(); s.Open != 0 || s.Left != 2 {
			t.Errorf("got %+v, want a client that left to be noticed at once", s)
		}
	})
}
