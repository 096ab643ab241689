package notifications_test

import (
	"errors"
	"testing"
	"time"

	"kontor/modules/notifications"
)

// A clock that is set delays no message by more than its own pause: what waits moves with it, in a running process and
// over a restart.
func TestClockStep_DeliveriesDoNotWaitForTheOldTime(t *testing.T) {
	for name, step := range map[string]time.Duration{"back an hour": -time.Hour, "back a day": -24 * time.Hour, "back ten days": -240 * time.Hour,
		"forward an hour": time.Hour, "forward a day": 24 * time.Hour} {
		for _, restarted := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " over a restart"}[restarted], func(t *testing.T) {
				g := &fakeGateway{answer: func(notifications.Delivery) error { return errors.New("down") }}
				options := notifications.Options{Email: g, MaxAttempts: 8, BasePause: 2 * time.Minute, MaxPause: 10 * time.Minute}
				h := newQueueTest(t, options)
				failed := h.enqueue("email", "failed")
				h.until(failed, "retrying")
				waiting := failed
				if restarted {
					_ = h.Close(t.Context())
					waiting = h.enqueue("email", "waiting") // nobody takes it before the step
				}
				h.clock.Advance(step)
				g.mu.Lock()
				g.answer = nil
				g.mu.Unlock()
				pause := options.BasePause
				if restarted {
					h.restart(options)
					h.until(waiting, "sent")
					pause = 24 * time.Hour // the longest that a gateway may have asked for
				}
				eventually(t, func() bool { // until the queue has seen the step
					s := h.state(failed)
					return s.next == nil || s.status == "sending" || !s.next.Std().After(h.clock.Now().Add(pause))
				})
				h.pass(pause)
				h.until(failed, "sent")
			})
		}
	}
}
