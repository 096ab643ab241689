package ratelimit_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kontor/server/ratelimit"
)

type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.at.Store(time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.at.Load()) }
func (c *clock) advance(d time.Duration) { c.at.Add(int64(d)) }

func TestAllow_AllowsABurstAndThenOneRequestAnInterval(t *testing.T) {
	for _, perMinute := range []int{1, 3, 7, 60, 1200, 99_991} {
		t.Run(fmt.Sprint(perMinute), func(t *testing.T) {
			c := newClock()
			l := ratelimit.New(c.now)
			for i := range perMinute {
				v := l.Allow([]byte("k"), perMinute)
				if !v.Allowed || v.Limit != perMinute || v.Remaining != perMinute-1-i {
					t.Fatalf("request %d: got %+v, want it allowed with %d remaining", i, v, perMinute-1-i)
				}
			}
			refused := l.Allow([]byte("k"), perMinute)
			if refused.Allowed || refused.RetryAfter <= 0 || refused.RetryAfter > time.Minute/time.Duration(perMinute)+time.Microsecond*100 {
				t.Fatalf("after the burst: got %+v, want a rejection for about one interval", refused)
			}
			c.advance(refused.RetryAfter - 1)
			if v := l.Allow([]byte("k"), perMinute); v.Allowed {
				t.Fatalf("just before Retry-After has passed: got %+v, want a rejection", v)
			}
			c.advance(1)
			if v := l.Allow([]byte("k"), perMinute); !v.Allowed {
				t.Fatalf("once Retry-After has passed: got %+v, want it allowed", v)
			}
		})
	}
}

func TestAllow_CountsKeysSeparately(t *testing.T) {
	l := ratelimit.New(newClock().now)
	l.Allow([]byte("a"), 1)
	if !l.Allow([]byte("b"), 1).Allowed {
		t.Fatal("b was rejected because of a")
	}
	if l.Allow([]byte("a"), 1).Allowed {
		t.Fatal("a was accepted twice")
	}
}

func TestAllow_RejectsAllRequestsAtZero(t *testing.T) {
	if v := ratelimit.New(newClock().now).Allow([]byte("k"), 0); v.Allowed || v.RetryAfter <= 0 {
		t.Fatalf("got %+v, want a rejection with a time", v)
	}
}

func TestAllow_KeepsCountsUnderAFloodOfKeys(t *testing.T) {
	c := newClock()
	l := ratelimit.New(c.now)
	for range 3 {
		l.Allow([]byte("victim"), 3)
	}
	const flood = 400_000
	allowed := 0
	for i := range flood {
		if l.Allow(fmt.Appendf(nil, "flood-%d", i), 1).Allowed {
			allowed++
		}
	}
	if allowed >= flood*3/4 {
		t.Fatalf("%d of %d new keys were accepted although the table is full", allowed, flood)
	}
	if l.Allow([]byte("victim"), 3).Allowed {
		t.Fatal("the flood made the limiter forget a key that was used up")
	}
	c.advance(2 * time.Minute)
	if !l.Allow([]byte("late"), 1).Allowed {
		t.Fatal("there is still no room once the flood has passed")
	}
}

func TestAllow_NeverExceedsTheLimitInParallel(t *testing.T) {
	l := ratelimit.New(newClock().now)
	var allowed atomic.Int64
	var wait sync.WaitGroup
	for range 32 {
		wait.Go(func() {
			for range 100 {
				if l.Allow([]byte("k"), 500).Allowed {
					allowed.Add(1)
				}
			}
		})
	}
	wait.Wait()
	if got := allowed.Load(); got != 500 {
		t.Fatalf("%d of 3200 parallel requests were accepted, want 500", got)
	}
}

func BenchmarkAllow(b *testing.B) {
	l := ratelimit.New(time.Now)
	key := []byte("1f 0193a000-0000-7000-8000-000000000001")
	b.ReportAllocs()
	for b.Loop() {
		l.Allow(key, 1_000_000)
	}
}

// A step of the clock back delays callers for the length of a burst at most. A step forward ends the delay.
func TestClockStep_DelaysNobodyForLong(t *testing.T) {
	for name, step := range map[string]time.Duration{"back a second": -time.Second, "back an hour": -time.Hour, "back a day": -24 * time.Hour,
		"forward an hour": time.Hour, "forward a day": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			l := ratelimit.New(c.now)
			for range 60 {
				l.Allow([]byte("k"), 60)
			}
			c.advance(step)
			v := l.Allow([]byte("k"), 60)
			if step > 0 != v.Allowed || v.RetryAfter > time.Minute || v.Reset > time.Minute {
				t.Errorf("after the step: %+v", v)
			}
			c.advance(v.RetryAfter)
			if v := l.Allow([]byte("k"), 60); !v.Allowed {
				t.Errorf("once Retry-After has passed: %+v", v)
			}
			if v := l.Allow([]byte("other"), 60); !v.Allowed || v.Remaining != 59 {
				t.Errorf("another key: %+v", v)
			}
		})
	}
}

// A table that was full before a step back has room again once its keys equal fresh ones.
func TestClockStep_CleansAFullTable(t *testing.T) {
	c := newClock()
	l := ratelimit.New(c.now)
	for i := range 400_000 {
		l.Allow(fmt.Appendf(nil, "flood-%d", i), 1)
	}
	c.advance(-24 * time.Hour)
	if !l.Allow([]byte("late"), 1).Allowed {
		t.Fatal("there is no room after the step")
	}
}
