package auth_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"kontor/modules/kit/factor"
)

// Wrong codes within a session count like those of sign-ins.
func TestReauthenticate_LocksOut(t *testing.T) {
	h, anna := newEnrolled(t, factor.TOTP)
	token := h.completeSignIn("anna@example.ch", object("code", h.factors.code(anna, "111111"))).text("access_token")
	evaluated := h.factors.evaluated
	var wait sync.WaitGroup
	for i := range 50 {
		wait.Go(func() {
			if _, err := h.try("POST", "/v1/users/"+anna+"/reauthenticate", map[string]string{"code": fmt.Sprint(i)}, "Authorization", "Bearer "+token); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if got := h.factors.evaluated - evaluated; got > 5 {
		t.Errorf("%d guesses were evaluated", got)
	}
	h.expect("a right code", h.again(anna, token, object("code", h.factors.code(anna, "222222"))), 429, lockedOut)
	h.expect("the password", h.again(anna, token, object("password", password)), 200, "")
}

func TestReauthenticate_Passkey(t *testing.T) {
	h, anna := newEnrolled(t, factor.Passkey)
	h.factors.keys["anna's key"] = anna
	signIn := func() string {
		step := h.firstStep("anna@example.ch")
		return h.secondStep(step.text("token"), passkeyAnswer(step, "anna's key")).text("access_token")
	}
	token, other := signIn(), signIn()
	options := func(token string) answer {
		return h.call("POST", "/v1/users/"+anna+"/reauthenticate/options", nil, "Authorization", "Bearer "+token)
	}
	h.clock.Advance(11 * time.Minute)
	h.expect("stale", h.get("/factor", token), 401, stale)
	asked := options(token)
	if fmt.Sprint(asked.json["methods"]) != "[password passkey]" {
		t.Errorf("got %s", asked.body)
	}
	body := passkeyAnswer(asked, "anna's key")
	body["token"] = asked.text("token")
	h.expect("from another session", h.again(anna, other, body), 400, "common.invalid_input")
	h.expect("the passkey", h.again(anna, token, body), 200, "")
	h.expect("fresh", h.get("/factor", token), 200, "")
	h.expect("the other session", h.get("/factor", other), 401, stale)
	h.expect("twice", h.again(anna, token, body), 400, "common.invalid_input")
	asked = options(token)
	body["token"] = asked.text("token")
	h.expect("the assertion of the request before", h.again(anna, token, body), 400, "common.invalid_input")
}
