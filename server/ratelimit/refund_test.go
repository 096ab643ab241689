package ratelimit_test

import (
	"testing"
	"time"

	"kontor/server/ratelimit"
)

func TestRefund_RevertsOneCount(t *testing.T) {
	c := newClock()
	l := ratelimit.New(c.now)
	for range 1000 {
		if !l.Allow([]byte("k"), 3).Allowed {
			t.Fatal("a request that was given back is counted")
		}
		l.Refund([]byte("k"), 3)
	}
	for i, want := range []bool{true, true, true, false} {
		if got := l.Allow([]byte("k"), 3).Allowed; got != want {
			t.Errorf("request %d: got %t, want %t: refunds must not exceed a burst", i+1, got, want)
		}
	}
	c.advance(time.Minute)
	l.Refund([]byte("unknown"), 3)
	l.Refund([]byte("k"), 0)
	if v := l.Allow([]byte("k"), 3); !v.Allowed || v.Remaining != 2 {
		t.Errorf("got %+v", v)
	}
}

// Of several requests, a refund takes back one.
func TestRefund_TakesBackOneOfSeveral(t *testing.T) {
	l := ratelimit.New(newClock().now)
	for range 3 {
		l.Allow([]byte("k"), 3)
	}
	l.Refund([]byte("k"), 3)
	for i, want := range []bool{true, false} {
		if got := l.Allow([]byte("k"), 3).Allowed; got != want {
			t.Errorf("request %d after the refund: got %t, want %t", i+1, got, want)
		}
	}
}
