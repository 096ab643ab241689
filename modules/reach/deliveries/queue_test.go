package deliveries_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kontor/modules/reach/deliveries"
	"kontor/store"
	"kontor/store/testenv"
)

func TestQueue_RetriesWithGrowingPauses(t *testing.T) {
	wholes := []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second, 10 * time.Second}
	var tries atomic.Int32
	g := &fakeGateway{answer: func(deliveries.Delivery) error {
		if int(tries.Add(1)) <= len(wholes) {
			return errors.New("down")
		}
		return nil
	}}
	h := newQueueTest(t, deliveries.Options{Email: g, MaxAttempts: 8, BasePause: 2 * time.Second, MaxPause: 10 * time.Second})
	id := h.enqueue("email", "hello")
	for n, whole := range wholes {
		eventually(t, func() bool { s := h.state(id); return s.status == "retrying" && s.attempts == n+1 })
		s := h.state(id)
		pause := s.next.Std().Sub(h.clock.Now())
		if pause < whole/2 || pause > whole || s.lastError == nil || *s.lastError != "down" {
			t.Errorf("after attempt %d: pause %s, want %s to %s; error %v", n+1, pause, whole/2, whole, s.lastError)
		}
		h.pass(pause)
	}
	if s := h.until(id, "sent"); s.text != "" || s.lastError != nil || s.next != nil {
		t.Errorf("got %+v, want no text after it was sent", s)
	}
	if got := g.accepted(); len(got) != 1 {
		t.Errorf("it was sent %d times", len(got))
	}
}

func TestQueue_BoundsPauses(t *testing.T) {
	const base, longest = time.Hour, 7 * 24 * time.Hour
	h := newQueueTest(t, deliveries.Options{Email: &fakeGateway{}, BasePause: base, MaxPause: longest})
	for n := range 200 {
		whole := longest
		if n < 9 {
			whole = min(longest, base<<max(n-1, 0))
		}
		if pause := h.Pause(n); pause < whole/2 || pause > whole {
			t.Errorf("after attempt %d: got %s, want %s to %s", n, pause, whole/2, whole)
		}
	}
}

func TestQueue_StopsAfterTheLastAttemptOrAPermanentError(t *testing.T) {
	g := &fakeGateway{answer: func(d deliveries.Delivery) error {
		if d.Text == "rejected" {
			return &deliveries.SendError{Permanent: true, Cause: errors.New("no such mailbox")}
		}
		return errors.New("down")
	}}
	h := newQueueTest(t, deliveries.Options{Email: g, MaxAttempts: 3})
	rejected, down := h.enqueue("email", "rejected"), h.enqueue("email", "down")
	if s := h.until(rejected, "dead"); s.attempts != 1 || s.next != nil {
		t.Errorf("permanent error: %+v, want one attempt", s)
	}
	h.untilItEnds(down)
	if s := h.state(down); s.attempts != 3 {
		t.Errorf("got %d attempts, want 3", s.attempts)
	}
}

func TestQueue_HonoursRetryAfter(t *testing.T) {
	g := &fakeGateway{answer: func(deliveries.Delivery) error {
		return &deliveries.SendError{RetryAfter: 10 * time.Minute, Cause: errors.New("busy")}
	}}
	h := newQueueTest(t, deliveries.Options{SMS: g})
	s := h.until(h.enqueue("sms", "x"), "retrying")
	if pause := s.next.Std().Sub(h.clock.Now()); pause != 10*time.Minute {
		t.Errorf("got a pause of %s, want 10 minutes", pause)
	}
}

func TestQueue_ContinuesDespiteAPanicAndASlowChannel(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	poison := &fakeGateway{answer: func(d deliveries.Delivery) error {
		if d.Text == "poison" {
			panic("no")
		}
		return nil
	}}
	stuck := &fakeGateway{answer: func(deliveries.Delivery) error { <-release; return nil }}
	h := newQueueTest(t, deliveries.Options{SMS: poison, Email: stuck})
	for range 20 {
		h.enqueue("email", "slow")
	}
	var bad, good []string
	for range 20 {
		bad, good = append(bad, h.enqueue("sms", "poison")), append(good, h.enqueue("sms", "fine"))
	}
	for _, id := range good {
		h.until(id, "sent")
	}
	for _, id := range bad {
		if s := h.until(id, "retrying"); !strings.Contains(*s.lastError, "panic") {
			t.Errorf("got %+v", s)
		}
	}
}

func TestQueue_MovesWaitingDeliveriesToTheLocalOutboxWithoutAGateway(t *testing.T) {
	g := &fakeGateway{answer: func(deliveries.Delivery) error { return errors.New("down") }}
	h := newQueueTest(t, deliveries.Options{Email: g})
	id := h.enqueue("email", "hello")
	h.until(id, "retrying")
	_ = h.Close(context.Background())
	h.restart(deliveries.Options{})
	if s := h.until(id, "sent"); s.text != "hello" {
		t.Errorf("got %+v, want its text in the local outbox", s)
	}
}

func TestReady_ReportsAStalledQueue(t *testing.T) {
	release := make(chan struct{})
	g := &fakeGateway{answer: func(deliveries.Delivery) error { <-release; return nil }}
	h := newQueueTest(t, deliveries.Options{Email: g})
	defer close(release)
	if err := h.Ready(t.Context()); err != nil {
		t.Errorf("an empty queue: %v", err)
	}
	for range 20 { // more than parallelSends
		h.enqueue("email", "x")
	}
	eventually(t, func() bool { return count(t, h.db, "deliveries WHERE status = 'sending'") == 8 })
	h.clock.Advance(6 * time.Minute)
	eventually(t, func() bool { return h.Ready(context.Background()) != nil })
}

// scriptedGateway answers the attempts of each delivery according to a plan.
type scriptedGateway struct {
	mu    sync.Mutex
	plans map[string][]int // text → answers
	tries map[string]int
}

const (
	accepts = iota
	isDown
	rejects
	panics
)

func (g *scriptedGateway) Send(_ context.Context, d deliveries.Delivery) error {
	g.mu.Lock()
	plan, n := g.plans[d.Text], g.tries[d.Text]
	g.tries[d.Text]++
	g.mu.Unlock()
	switch plan[min(n, len(plan)-1)] {
	case accepts:
		return nil
	case isDown:
		return errors.New("down")
	case rejects:
		return &deliveries.SendError{Permanent: true, Cause: errors.New("no")}
	default:
		panic("no")
	}
}

// Whatever a gateway answers, each delivery ends as sent or dead. It is not tried more often than allowed, nor after its end.
func TestQueue_EndsEveryDelivery(t *testing.T) {
	testenv.Checks(t, 25, 100, 1000)
	const maxAttempts = 4
	g := &scriptedGateway{plans: map[string][]int{}, tries: map[string]int{}}
	h := newQueueTest(t, deliveries.Options{Email: g, MaxAttempts: maxAttempts})
	rapid.Check(t, func(r *rapid.T) {
		plan := rapid.SliceOfN(rapid.IntRange(accepts, panics), maxAttempts, maxAttempts).Draw(r, "answers")
		want, attempts := "dead", maxAttempts
		for n, answer := range plan {
			if answer == accepts || answer == rejects {
				attempts = n + 1
				if answer == accepts {
					want = "sent"
				}
				break
			}
		}
		text := store.NewID()
		g.mu.Lock()
		g.plans[text] = plan
		g.mu.Unlock()
		id := h.enqueue("email", text)
		h.untilItEnds(id)
		g.mu.Lock()
		defer g.mu.Unlock()
		if s := h.state(id); s.status != want || s.attempts != attempts || g.tries[text] != attempts {
			r.Fatalf("plan %v: got %+v after %d tries, want %s after %d", plan, s, g.tries[text], want, attempts)
		}
	})
}
