package auth_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"kontor/modules/kit/factor"
)

func TestSecondStep_HostileTokens(t *testing.T) {
	h := newHarness(t)
	anna, beat := h.user("anna@example.ch"), h.user("beat@example.ch")
	h.factors.enrol(anna, factor.TOTP, factor.Passkey)
	h.factors.enrol(beat, factor.TOTP)
	h.factors.keys["anna's key"] = anna
	device := []string{"X-Device-ID", "telephone"}
	good := func() map[string]any { return object("code", h.factors.code(anna, "111111")) }
	session := h.completeSignIn("anna@example.ch", good(), device...).text("access_token")
	options := h.call("POST", "/v1/users/"+anna+"/reauthenticate/options", nil, append(device, "Authorization", "Bearer "+session)...)
	h.expect("options", options, 200, "")
	used := h.firstStep("anna@example.ch", device...).text("token")
	h.expect("use", h.secondStep(used, good(), device...), 200, "")
	for _, attack := range []struct {
		name    string
		token   func() string
		body    map[string]any
		headers []string
		status  int
		code    string
	}{
		{"another device", nil, good(), []string{"X-Device-ID", "laptop"}, 401, expired},
		{"no device", nil, good(), nil, 401, expired},
		{"used before", func() string { return used }, good(), device, 401, expired},
		{"a token of a step-up", func() string { return options.text("token") }, good(), device, 401, expired},
		{"a refresh token", func() string { return session[:43] }, good(), device, 401, expired},
		{"forged", func() string { return strings.Repeat("A", 43) }, good(), device, 401, expired},
		{"a character too many", func() string { return h.firstStep("anna@example.ch", device...).text("token") + "A" }, good(), device, 401, expired},
		{"padded", func() string { return h.firstStep("anna@example.ch", device...).text("token") + "=" }, good(), device, 401, expired},
		{"empty", func() string { return "" }, good(), device, 400, "common.invalid_input"},
		{"huge", func() string { return strings.Repeat("A", 10_000) }, good(), device, 400, "common.invalid_input"},
		{"a huge body", func() string { return strings.Repeat("A", 40_000) }, good(), device, 413, "common.payload_too_large"},
		{"with NUL", func() string { return "\x00" + strings.Repeat("A", 42) }, good(), device, 401, expired},
		{"SQL", func() string { return "' OR 1=1 --" }, good(), device, 401, expired},
		{"the token of another user", func() string { return h.firstStep("beat@example.ch", device...).text("token") }, good(), device, 401, wrongFactor},
		{"no answer", nil, object("code", ""), device, 400, "common.invalid_input"},
		{"two answers", nil, map[string]any{"code": "111111", "recovery_code": "x"}, device, 400, "common.invalid_input"},
		{"a password", nil, object("password", password), device, 400, "common.invalid_input"},
		{"a code with letters", nil, object("code", "11111l"), device, 401, wrongFactor},
		{"an empty passkey", nil, object("passkey", map[string]any{}), device, 401, wrongFactor},
		{"an array as a passkey", nil, object("passkey", []any{}), device, 400, "common.invalid_input"},
		{"the passkey of another request", nil, passkeyAnswer(options, "anna's key"), device, 401, wrongFactor},
	} {
		t.Run(attack.name, func(t *testing.T) {
			token := ""
			if attack.token != nil {
				token = attack.token()
			} else {
				token = h.firstStep("anna@example.ch", device...).text("token")
			}
			h.expect(attack.name, h.secondStep(token, attack.body, attack.headers...), attack.status, attack.code)
			h.clock.Advance(time.Hour) // lockouts end, failures stay counted
			// A right answer resets the failures.
			h.expect("the user", h.secondStep(h.firstStep("anna@example.ch", device...).text("token"), good(), device...), 200, "")
		})
	}
}

// Fifty parallel guesses, for one sign-in or for many, get at most five evaluated, and a restart starts no new count.
func TestSecondStep_ParallelGuesses(t *testing.T) {
	for what, many := range map[string]bool{"one sign-in": false, "many sign-ins": true} {
		t.Run(what, func(t *testing.T) {
			h, anna := newEnrolled(t, factor.TOTP)
			tokens := make([]string, 50)
			for i := range tokens {
				if tokens[i] = tokens[0]; many || i == 0 {
					tokens[i] = h.firstStep("anna@example.ch").text("token")
				}
			}
			var wait sync.WaitGroup
			for i, token := range tokens {
				wait.Go(func() {
					a, err := h.try("POST", "/authenticate/factor", map[string]string{"token": token, "code": fmt.Sprint(100_000 + i)})
					if err != nil || a.status == 200 || a.status >= 500 {
						t.Errorf("%d %s %v", a.status, a.body, err)
					}
				})
			}
			wait.Wait()
			if h.factors.evaluated > 5 {
				t.Errorf("%d guesses were evaluated", h.factors.evaluated)
			}
			h.restart()
			h.secondStep(tokens[len(tokens)-1], object("code", "200000"))
			h.secondStep(h.firstStep("anna@example.ch").text("token"), object("code", h.factors.code(anna, "111111")))
			if h.factors.evaluated > 5 {
				t.Errorf("%d guesses were evaluated after a restart", h.factors.evaluated)
			}
		})
	}
}

func TestSecondStep_LocksOutByUserAndNotByPassword(t *testing.T) {
	h, anna := newEnrolled(t, factor.TOTP)
	step := h.firstStep("anna@example.ch").text("token")
	for range 5 {
		h.expect("a wrong code", h.secondStep(step, object("code", "wrong")), 401, wrongFactor)
	}
	h.expect("the sixth, although right", h.secondStep(step, object("code", h.factors.code(anna, "111111"))), 401, expired)
	step = h.firstStep("anna@example.ch").text("token") // the password is not locked out
	h.expect("a right password resets nothing", h.secondStep(step, object("code", "111111")), 429, lockedOut)
	h.clock.Advance(seconds(2))
	h.expect("a wrong code after the lockout", h.secondStep(step, object("code", "wrong")), 401, wrongFactor)
	h.expect("the next lockout", h.secondStep(step, object("code", "111111")), 429, lockedOut)
	h.clock.Advance(seconds(3))
	h.expect("still locked out", h.secondStep(step, object("code", "111111")), 429, lockedOut)
	h.clock.Advance(seconds(1))
	h.expect("the right code", h.secondStep(step, object("code", "111111")), 200, "")
	step = h.firstStep("anna@example.ch").text("token")
	h.expect("failures are forgotten", h.secondStep(step, object("code", "wrong")), 401, wrongFactor)
	h.expect("no lockout", h.secondStep(step, object("code", h.factors.code(anna, "222222"))), 200, "")
}
