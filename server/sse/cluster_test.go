package sse_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kontor/server/sse"
)

func TestHub_ReportsEndedStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []string
		var h *sse.Hub
		h = newHub(sse.Options{Ended: func(user string) {
			if n := h.Count(user); n > 1 {
				t.Errorf("%s has %d streams when one of two has ended", user, n)
			}
			ended = append(ended, user)
		}})
		defer h.Close()
		first, p := open(t, h, "a", "de", time.Time{})
		second, q := open(t, h, "a", "de", time.Time{})
		go p.read()
		go q.read()
		if n := h.Count("a"); n != 2 {
			t.Errorf("counted %d streams", n)
		}
		first.End()
		first.End()
		if n := h.Count("a"); n != 1 || !slices.Equal(ended, []string{"a"}) {
			t.Errorf("counted %d streams, ended: %q", n, ended)
		}
		h.Refuse(second)
		if stats := h.Stats(); stats.Open != 0 || stats.Refused != 1 || len(ended) != 2 {
			t.Errorf("got %+v, ended: %q", stats, ended)
		}
		synctest.Wait()
	})
}

// Frames that are not allowed any more end the stream without them; keepalives and the close frame carry nothing.
func TestHub_EndsStreamsThatItMayNotWriteTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var forbidden atomic.Bool
		h := newHub(sse.Options{MayWrite: func() bool { return !forbidden.Load() }})
		defer h.Close()
		_, written := open(t, h, "a", "de", time.Time{})
		_, idle := open(t, h, "b", "de", time.Time{})
		go written.read()
		go idle.read()
		publish(h, 1, "a", "b")
		synctest.Wait()
		forbidden.Store(true)
		publish(h, 2, "a")
		time.Sleep(2 * heartbeat)
		synctest.Wait()
		if got := written.got(); !slices.Equal(got, []string{"a de 1"}) || !written.over() {
			t.Errorf("got %q, ended: %t", got, written.over())
		}
		if idle.over() {
			t.Error("a stream without frames has ended")
		}
		if stats := h.Stats(); stats.Left != 1 || stats.Revoked != 0 {
			t.Errorf("got %+v", stats)
		}
	})
}
