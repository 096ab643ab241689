package deliveries_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"kontor/modules/reach/deliveries"
	"kontor/store"
)

func TestQueue_ResumesDeliveriesOfAnEarlierProcess(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	dying := &fakeGateway{answer: func(deliveries.Delivery) error { <-release; return errors.New("too late") }}
	h := newQueueTest(t, deliveries.Options{Email: dying, MaxAttempts: 3})
	id := h.enqueue("email", "hello")
	h.until(id, "sending")
	h.crash()

	g := &fakeGateway{}
	h.restart(deliveries.Options{Email: g, MaxAttempts: 3})
	eventually(t, func() bool { h.release(); return h.state(id).status == "sent" })
	if s := h.state(id); s.attempts != 2 {
		t.Errorf("got %+v, want it to be sent by the second attempt, without waiting for the lease", s)
	}
	if n := len(g.accepted()); n != 1 {
		t.Errorf("sent %d times", n)
	}
}

func TestQueue_AbandonsADeliveryThatEndsTheProcessEachTime(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	deadly := &fakeGateway{answer: func(deliveries.Delivery) error { <-release; return nil }}
	h := newQueueTest(t, deliveries.Options{Email: deadly, MaxAttempts: 2})
	id := h.enqueue("email", "deadly")
	eventually(t, func() bool { return deadly.triesOf(id) == 1 }) // it is stored as "sending" shortly before
	h.crash()
	h.restart(deliveries.Options{Email: deadly, MaxAttempts: 2})
	eventually(t, func() bool { h.release(); return deadly.triesOf(id) == 2 })
	h.crash()
	h.restart(deliveries.Options{Email: deadly, MaxAttempts: 2})
	eventually(t, func() bool { h.release(); return h.state(id).status == "dead" })
	if s := h.state(id); !strings.Contains(*s.lastError, "abandoned") {
		t.Errorf("got %+v", s)
	}
	if n := deadly.triesOf(id); n != 2 {
		t.Errorf("it was tried %d times, want 2", n)
	}
}

func TestQueue_ResumesDeliveriesWithAnExpiredLease(t *testing.T) {
	release := make(chan struct{})
	free := sync.OnceFunc(func() { close(release) })
	defer free()
	g := &fakeGateway{answer: func(d deliveries.Delivery) error {
		if d.Attempts > 1 {
			return nil
		}
		<-release
		return errors.New("too late")
	}}
	h := newQueueTest(t, deliveries.Options{Email: g})
	id := h.enqueue("email", "x")
	h.until(id, "sending")
	h.pass(3 * time.Minute)
	h.until(id, "sent")
	free()
	_ = h.Close(t.Context())
	if s := h.state(id); s.status != "sent" {
		t.Errorf("a worker without the lease changed the delivery: %+v", s)
	}
}

// An attempt whose lease has expired records nothing while the next attempt is under way, or it would be sent a third time.
func TestQueue_IgnoresTheOutcomeOfALostLease(t *testing.T) {
	var first, others = make(chan struct{}), make(chan struct{})
	freeFirst, freeOthers := sync.OnceFunc(func() { close(first) }), sync.OnceFunc(func() { close(others) })
	defer freeFirst()
	defer freeOthers()
	g := &fakeGateway{answer: func(d deliveries.Delivery) error {
		switch {
		case d.Text == "probe":
		case d.Text == "twice" && d.Attempts == 1:
			<-first
			return errors.New("too late")
		default:
			<-others
		}
		return nil
	}}
	h := newQueueTest(t, deliveries.Options{Email: g})
	id := h.enqueue("email", "twice")
	h.until(id, "sending")
	h.pass(3 * time.Minute)
	eventually(t, func() bool { return h.state(id).attempts == 2 })

	// All workers are busy. One is free for the probe when the outcome of the first attempt is recorded.
	for range deliveries.ParallelSends - 2 {
		h.until(h.enqueue("email", "blocks"), "sending")
	}
	probe := h.enqueue("email", "probe")
	freeFirst()
	h.until(probe, "sent")
	if s := h.state(id); s.status != "sending" || s.attempts != 2 || s.lastError != nil {
		t.Errorf("during the second attempt the delivery is %+v", s)
	}
	freeOthers()
	h.until(id, "sent")
	if n := g.triesOf(id); n != 2 {
		t.Errorf("it was sent %d times, want 2", n)
	}
}

// A lease that another node has taken over counts the attempts from the beginning if an administrator has had the delivery tried again.
func TestQueue_IgnoresTheOutcomeOfALeaseThatIsAnothersNow(t *testing.T) {
	release := make(chan struct{})
	free := sync.OnceFunc(func() { close(release) })
	defer free()
	g := &fakeGateway{answer: func(deliveries.Delivery) error {
		<-release
		return errors.New("too late")
	}}
	h := newQueueTest(t, deliveries.Options{Email: g})
	id := h.enqueue("email", "x")
	h.until(id, "sending")
	if err := h.db.InTx(t.Context(), func(tx *store.Tx) error {
		return tx.Run(t.Context(), `UPDATE deliveries SET leased_by = 'another node' WHERE id = $1`, id)
	}); err != nil {
		t.Fatal(err)
	}
	free()
	_ = h.Close(t.Context())
	if s := h.state(id); s.status != "sending" || s.attempts != 1 || s.lastError != nil {
		t.Errorf("a worker without the lease changed the delivery: %+v", s)
	}
}
