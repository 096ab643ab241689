package directory_test

import (
	"testing"
	"time"
)

// Codes from before a step back of the clock count towards the limits as of the step, and not until that time is reached again.
func TestClockStep_AllowsNewCodes(t *testing.T) {
	for name, step := range map[string]time.Duration{"back an hour": -time.Hour, "back a day": -24 * time.Hour,
		"forward an hour": time.Hour, "forward a day": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			m := h.customer(email(1))
			send := func(status int, code string) {
				t.Helper()
				answer := h.call(m.token, "POST", m.path("/credentials"), credential("email", email(2))).want(t, status, code)
				if status == 201 {
					h.call(m.token, "DELETE", "/v1/users/credentials/"+answer.text("id"), nil).want(t, 200, "")
				}
			}
			for range 3 {
				send(201, "")
			}
			h.clock.Advance(step)
			if step < 0 {
				send(429, "users.otp_send_limited")
				h.clock.Advance(time.Hour)
			}
			for range 3 {
				send(201, "")
			}
			send(429, "users.otp_send_limited")
		})
	}
}
