package deliveries_test

import (
	"errors"
	"testing"
	"time"

	"kontor/modules/reach/deliveries"
)

// A change of the clock delays no delivery by more than its own pause, in a running process and across a restart.
func TestQueue_FollowsChangesOfTheClock(t *testing.T) {
	for name, step := range map[string]time.Duration{"back an hour": -time.Hour, "back a day": -24 * time.Hour, "back ten days": -240 * time.Hour,
		"forward an hour": time.Hour, "forward a day": 24 * time.Hour} {
		for _, restarted := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " across a restart"}[restarted], func(t *testing.T) {
				g := &fakeGateway{answer: func(deliveries.Delivery) error { return errors.New("down") }}
				options := deliveries.Options{Email: g, MaxAttempts: 8, BasePause: 2 * time.Minute, MaxPause: 10 * time.Minute}
				h := newQueueTest(t, options)
				failed := h.enqueue("email", "failed")
				h.until(failed, "retrying")
				waiting := failed
				if restarted {
					_ = h.Close(t.Context())
					waiting = h.enqueue("email", "waiting") // no worker claims it before the step
				}
				g.mu.Lock()
				g.answer = nil
				g.mu.Unlock()
				h.clock.Advance(step)
				pause := options.BasePause
				if restarted {
					h.restart(options)
					h.until(waiting, "sent")
					pause = 24 * time.Hour // the longest pause that a gateway may ask for
				}
				eventually(t, func() bool { // until the queue has noticed the step
					s := h.state(failed)
					return s.next == nil || s.status == "sending" || !s.next.Std().After(h.clock.Now().Add(pause))
				})
				h.pass(pause)
				h.until(failed, "sent")
			})
		}
	}
}
