package bus_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"kontor/store/postgres/internal/bus"
	"kontor/store/postgres/postgrestest"
)

// server is a server's clock beside the monotonic one.
type server struct {
	mono   *clock
	offset time.Duration
}

var epoch = time.Date(2026, time.January, 31, 8, 0, 0, 0, time.UTC)

func (s server) now() time.Time { return epoch.Add(s.mono.Now() + s.offset) }

// ask passes a sample whose answer took two times: to the server and back.
func (s server) ask(c *bus.Clock, there, back time.Duration) {
	sent := s.mono.Now()
	s.mono.advance(there)
	shown := s.now()
	s.mono.advance(back)
	c.Sample(sent, s.mono.Now(), shown)
}

func TestClock_IsWrongByHalfARoundTripAtMost(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(1, seed))
		s := server{mono: &clock{}, offset: time.Duration(random.Int64N(int64(time.Hour)))}
		c := bus.NewClock(s.mono)
		best := time.Hour
		for range 100 {
			there, back := time.Duration(random.Int64N(int64(200*time.Millisecond))), time.Duration(random.Int64N(int64(200*time.Millisecond)))
			best = min(best, there+back)
			s.ask(c, there, back)
			s.mono.advance(250 * time.Millisecond)
		}
		// While it runs at half speed it may be wrong by more.
		s.mono.advance(time.Second)
		if wrong := c.Now().Sub(s.now()).Abs(); wrong > best/2+time.Minute/5000 {
			t.Errorf("seed %d: the clock is wrong by %v, with a shortest round trip of %v", seed, wrong, best)
		}
	}
}

func TestClock_NeverGoesBack(t *testing.T) {
	s := server{mono: &clock{}, offset: time.Minute}
	c := bus.NewClock(s.mono)
	s.ask(c, time.Millisecond, time.Millisecond)
	for _, step := range []time.Duration{-10 * time.Second, 30 * time.Second, -time.Second, 0} {
		s.offset += step
		before := c.Now()
		s.ask(c, time.Millisecond, time.Millisecond)
		for range 25_000 {
			s.mono.advance(time.Millisecond)
			now := c.Now()
			if now.Before(before) {
				t.Fatalf("after a step of %v the clock went back by %v", step, before.Sub(now))
			}
			if !now.After(before) {
				t.Fatalf("after a step of %v the clock stands still", step)
			}
			before = now
		}
		if wrong := c.Now().Sub(s.now()).Abs(); wrong > 10*time.Millisecond {
			t.Errorf("after a step of %v the clock is wrong by %v", step, wrong)
		}
	}
}

func TestClock_HasOneOrderForAllGoroutines(t *testing.T) {
	s := server{mono: &clock{}}
	c := bus.NewClock(s.mono)
	var mu sync.Mutex
	var latest time.Time
	var reading sync.WaitGroup
	for range 4 {
		reading.Go(func() {
			for range 2000 {
				mu.Lock()
				floor := latest
				mu.Unlock()
				now := c.Now()
				if now.Before(floor) {
					t.Errorf("a goroutine read %v after another had read %v", now, floor)
				}
				mu.Lock()
				if now.After(latest) {
					latest = now
				}
				mu.Unlock()
			}
		})
	}
	for range 1000 {
		s.offset -= time.Millisecond
		s.ask(c, time.Microsecond, time.Microsecond)
	}
	reading.Wait()
}

func TestClock_FollowsTheServer(t *testing.T) {
	address := postgrestest.URL(t)
	a, b := start(t, address, options{}), start(t, address, options{})
	for range 5 {
		before := a.Clock().Now()
		r := execute(t, a.writer, `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`)
		after := b.Clock().Now()
		shown, err := time.ParseDuration(string(r[0].Rows[0][0]) + "us")
		if err != nil {
			t.Fatal(err)
		}
		const slack = 50 * time.Millisecond
		server := time.Unix(0, int64(shown))
		if server.Before(before.Add(-slack)) || server.After(after.Add(slack)) {
			t.Errorf("the server's clock shows %v, those of the nodes %v and %v", server, before, after)
		}
	}
}
