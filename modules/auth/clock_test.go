package auth_test

import (
	"fmt"
	"testing"
	"time"
)

var steps = map[string]time.Duration{"back an hour": -time.Hour, "back a day": -24 * time.Hour, "back ten days": -240 * time.Hour,
	"forward an hour": time.Hour, "forward a day": 24 * time.Hour}

// Lockouts do not last until the old time is reached, and setting the clock back allows one more attempt, not five.
func TestClockStep_LockoutsStayShort(t *testing.T) {
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.user("anna@example.ch")
			w.fail(5, "anna@example.ch")
			w.wait(w.signIn("anna@example.ch", password))
			w.clock.Advance(step)
			if step < 0 {
				w.fail(1, "anna@example.ch")
				if got := w.wait(w.signIn("anna@example.ch", password)); got != 4 {
					t.Errorf("Retry-After %d after one more failure, want 4", got)
				}
				w.clock.Advance(4 * time.Second)
			}
			w.tokens("anna@example.ch")
		})
	}
}

func TestClockStep_NetworksAreNotLockedOut(t *testing.T) {
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.user("anna@example.ch")
			for i := range 30 {
				w.fail(1, fmt.Sprintf("guess%d@example.ch", i))
			}
			w.wait(w.signIn("anna@example.ch", password))
			w.clock.Advance(step)
			w.tokens("anna@example.ch")
			for i := range 30 {
				w.fail(1, fmt.Sprintf("another%d@example.ch", i))
			}
			w.user("beat@example.ch")
			w.wait(w.signIn("beat@example.ch", password)) // and are counted as before
		})
	}
}

// Tokens from before a step back stay valid, in this process and after a restart, and can be refreshed. A step forward ends
// what ends by then, and signing in works at once.
func TestClockStep_TokensStayValid(t *testing.T) {
	for name, step := range steps {
		for _, restarted := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " over a restart"}[restarted], func(t *testing.T) {
				w := newWorld(t)
				anna := w.user("anna@example.ch")
				tokens := w.tokens("anna@example.ch")
				if restarted {
					w.stop()
				}
				w.clock.Advance(step)
				if restarted {
					w.start()
				}
				if step < 0 {
					w.expect("a token from before", w.sessions(anna, tokens.text("access_token")), 200, "")
					refreshed := w.refresh(tokens.text("refresh_token"))
					w.expect("a refresh", refreshed, 200, "")
					w.expect("the refreshed token", w.sessions(anna, refreshed.text("access_token")), 200, "")
				} else {
					w.expect("an old token", w.sessions(anna, tokens.text("access_token")), 401, "common.unauthorized")
				}
				w.expect("a new token", w.sessions(anna, w.tokens("anna@example.ch").text("access_token")), 200, "")
			})
		}
	}
}
