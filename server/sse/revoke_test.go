package sse_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"kontor/server/sse"
)

// A client that has read the first bytes of a write gets nothing more of it, nor what waits behind it.
func TestRevoke_InterruptsARunningWrite(t *testing.T) {
	withHub(t, sse.Options{}, func(t *testing.T, h *sse.Hub) {
		s, p := open(t, h, "a", "de", time.Time{})
		_, other := open(t, h, "a", "de", time.Time{})
		go other.read()
		publish(h, 1, "a")
		synctest.Wait() // a writer has taken the first frame and waits for the client
		publish(h, 2, "a")
		if _, err := io.ReadFull(p, make([]byte, 3)); err != nil {
			t.Fatal(err)
		}
		h.Revoke("a", func(one *sse.Stream) bool { return one != s })
		publish(h, 3, "a")
		if rest, err := io.ReadAll(p); len(rest) > 0 || err != nil {
			t.Errorf("got %q, %v after the revocation", rest, err)
		}
		synctest.Wait()
		if got := other.got(); len(got) != 3 || other.over() {
			t.Errorf("the stream that may go on got %q, ended: %t", got, other.over())
		}
		if stats := h.Stats(); stats.Revoked != 1 || stats.Open != 1 {
			t.Errorf("got %+v", stats)
		}
	})
}

func TestRevoke_ChecksStreamsOfOneUserOrOfAll(t *testing.T) {
	withHub(t, sse.Options{}, func(t *testing.T, h *sse.Hub) {
		for _, user := range []string{"a", "a", "b"} {
			_, p := open(t, h, user, "de", time.Time{})
			go p.read()
		}
		for user, want := range map[string]int{"a": 2, "b": 1, "nobody": 0, "": 3} {
			asked := 0
			h.Revoke(user, func(*sse.Stream) bool { asked++; return true })
			if asked != want {
				t.Errorf("%q: %d streams were asked, want %d", user, asked, want)
			}
		}
	})
}

func TestRevoke_EndsAStreamThatHasNoConnectionYet(t *testing.T) {
	withHub(t, sse.Options{}, func(t *testing.T, h *sse.Hub) {
		s, err := h.Open("a", "de", time.Time{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		h.Revoke("a", func(*sse.Stream) bool { return false })
		if !s.Ended() {
			t.Error("the stream stays open")
		}
	})
}

// Between the end of the token and the next beat nothing is delivered.
func TestPublish_SkipsStreamsWithExpiredTokens(t *testing.T) {
	withHub(t, sse.Options{}, func(t *testing.T, h *sse.Hub) {
		_, p := open(t, h, "a", "de", time.Now().Add(100*time.Millisecond))
		go p.read()
		publish(h, 1, "a")
		time.Sleep(100 * time.Millisecond) // in the bubble: the clock only
		publish(h, 2, "a")
		synctest.Wait()
		if got := p.got(); len(got) != 1 {
			t.Errorf("got %q", got)
		}
	})
}
