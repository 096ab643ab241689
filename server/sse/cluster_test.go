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

// Frames wait while they may not be written. A revocation in the meantime drops them.
func TestHub_HoldsFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var forbidden atomic.Bool
		h := newHub(sse.Options{MayWrite: func() bool { return !forbidden.Load() }})
		defer h.Close()
		kept, p := open(t, h, "a", "de", time.Time{})
		_, q := open(t, h, "b", "de", time.Time{})
		go p.read()
		go q.read()
		publish(h, 1, "a", "b")
		synctest.Wait()
		forbidden.Store(true)
		publish(h, 2, "a", "b")
		time.Sleep(2 * heartbeat)
		publish(h, 3, "a", "b")
		synctest.Wait()
		if got := p.got(); !slices.Equal(got, []string{"a de 1"}) || kept.Ended() {
			t.Errorf("got %q, ended: %t", got, kept.Ended())
		}
		h.Revoke("b", func(*sse.Stream) bool { return false })
		forbidden.Store(false)
		time.Sleep(time.Second)
		synctest.Wait()
		got := slices.DeleteFunc(p.got(), func(line string) bool { return line == ": keepalive" })
		if !slices.Equal(got, []string{"a de 1", "a de 2", "a de 3"}) {
			t.Errorf("got %q", got)
		}
		if got := q.got(); !slices.Equal(got, []string{"b de 1"}) {
			t.Errorf("after the revocation: got %q", got)
		}
	})
}
