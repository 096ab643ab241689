package auth_test

import (
	"fmt"
	"testing"
	"time"
)

var steps = map[string]time.Duration{"back an hour": -time.Hour, "back a day": -24 * time.Hour, "back ten days": -240 * time.Hour,
	"forward an hour": time.Hour, "forward a day": 24 * time.Hour}

// After a step back, a lockout begins again and keeps its length. Then one more attempt is allowed, not five.
func TestClockStep_LockoutsStayShort(t *testing.T) {
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.user("anna@example.ch")
			h.failSignIns(5, "anna@example.ch")
			h.retryAfter(h.signIn("anna@example.ch", password))
			h.clock.Advance(step)
			if step < 0 {
				if got := h.retryAfter(h.signIn("anna@example.ch", password)); got != 2 {
					t.Errorf("Retry-After %d after the step, want 2", got)
				}
				h.user("beat@example.ch") // a write follows the clock
				h.clock.Advance(2 * time.Second)
				h.failSignIns(1, "anna@example.ch")
				if got := h.retryAfter(h.signIn("anna@example.ch", password)); got != 4 {
					t.Errorf("Retry-After %d after one more failure, want 4", got)
				}
				h.clock.Advance(4 * time.Second)
			}
			h.mustSignIn("anna@example.ch")
		})
	}
}

func TestClockStep_NetworksAreNotLockedOut(t *testing.T) {
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.user("anna@example.ch")
			for i := range 30 {
				h.failSignIns(1, fmt.Sprintf("guess%d@example.ch", i))
			}
			h.retryAfter(h.signIn("anna@example.ch", password))
			h.clock.Advance(step)
			if step < 0 { // what was counted counts as of now
				if got := h.retryAfter(h.signIn("anna@example.ch", password)); got != 600 {
					t.Errorf("Retry-After %d after the step, want 600", got)
				}
				h.user("carla@example.ch") // a write follows the clock
				h.clock.Advance(10 * time.Minute)
			}
			h.mustSignIn("anna@example.ch")
			for i := range 30 {
				h.failSignIns(1, fmt.Sprintf("another%d@example.ch", i))
			}
			h.user("beat@example.ch")
			h.retryAfter(h.signIn("beat@example.ch", password)) // and are counted as before
		})
	}
}

// Tokens from before a step back stay valid and can be refreshed, also after a restart. After a step forward, tokens expire
// as usual, and sign-in works at once.
func TestClockStep_TokensStayValid(t *testing.T) {
	for name, step := range steps {
		for _, restarted := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " over a restart"}[restarted], func(t *testing.T) {
				h := newHarness(t)
				anna := h.user("anna@example.ch")
				tokens := h.mustSignIn("anna@example.ch")
				if restarted {
					h.stop()
				}
				h.clock.Advance(step)
				if restarted {
					h.start()
				}
				if step < 0 {
					h.expect("a token from before", h.getSessions(anna, tokens.text("access_token")), 200, "")
					refreshed := h.refresh(tokens.text("refresh_token"))
					h.expect("a refresh", refreshed, 200, "")
					h.expect("the refreshed token", h.getSessions(anna, refreshed.text("access_token")), 200, "")
				} else {
					h.expect("an old token", h.getSessions(anna, tokens.text("access_token")), 401, "common.unauthorized")
				}
				h.expect("a new token", h.getSessions(anna, h.mustSignIn("anna@example.ch").text("access_token")), 200, "")
			})
		}
	}
}
