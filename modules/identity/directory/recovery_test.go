package directory_test

import (
	"sync"
	"testing"
)

func (h *harness) recover(value string) reply {
	return h.call("", "POST", "/v1/users/initiate-recovery", map[string]string{"credential_value": value})
}

func (h *harness) complete(value, code string) reply {
	return h.call("", "POST", "/v1/users/complete-recovery", map[string]string{"credential_value": value, "otp": code, "password": newPassword})
}

func TestRecovery_SetsAPasswordAndEndsAllSessions(t *testing.T) {
	h := newHarness(t)
	m := h.customer(email(1))
	h.recover(" ANNA.1@BANK.example ").want(t, 200, "")
	message := h.outbox.last(email(1))
	if message.Purpose != "recovery" || h.audited("users.recovery_requested", m.credential) != 1 {
		t.Errorf("got %+v", message)
	}
	h.complete(email(1), wrong(message.Code)).want(t, 400, "users.invalid_otp")
	h.complete(email(1), message.Code).want(t, 200, "")
	if !h.auth.hasPassword(m.id, newPassword) || h.audited("users.password", m.id) != 1 {
		t.Error("the password is not changed, or the audit trail lacks the change")
	}
	h.call(m.token, "GET", "/v1/users/me", nil).want(t, 401, "common.unauthorized")
	h.complete(email(1), message.Code).want(t, 400, "users.invalid_otp") // used up
}

func TestRecovery_RevealsNoAccounts(t *testing.T) {
	h := newHarness(t)
	admin, disabled := h.admin(), h.customer(email(2))
	h.customer(email(1))
	h.registrant(email(3))
	h.staff("clerk.name", "Advisor")
	h.call(admin.token, "PATCH", disabled.path(""), map[string]string{"status": "disabled"}).want(t, 200, "")
	sent := h.outbox.count(email(2)) + h.outbox.count(email(3))
	h.clock.Advance(otpLife)

	known := []reply{h.recover(email(1)), h.complete(email(1), "000000x"), h.complete(email(1), wrong(h.outbox.last(email(1)).Code))}
	for range 4 {
		known = append(known, h.recover(email(1)))
	}
	for _, value := range []string{"nobody@bank.example", email(2), email(3), "clerk.name", "+41446681800", "no such thing!", admin.id} {
		other := []reply{h.recover(value), h.complete(value, "000000x"), h.complete(value, "000000")}
		for range 4 {
			other = append(other, h.recover(value))
		}
		for i := range known {
			if known[i].Status != other[i].Status || known[i].Text != other[i].Text || known[i].Header.Get("Retry-After") != other[i].Header.Get("Retry-After") {
				t.Errorf("%s, step %d: got %d %s, for a known account %d %s", value, i, other[i].Status, other[i].Text, known[i].Status, known[i].Text)
			}
		}
	}
	if known[0].Status != 200 || known[2].Status != 400 || known[6].Status != 429 {
		t.Errorf("got %d, %d, %d", known[0].Status, known[2].Status, known[6].Status)
	}
	if now := h.outbox.count(email(2)) + h.outbox.count(email(3)); now != sent {
		t.Error("a code was sent to a disabled user or to an address that is not validated")
	}
}

func TestRecovery_RejectsValidationCodes(t *testing.T) {
	h := newHarness(t)
	m := h.customer(email(1))
	second := h.call(m.token, "POST", m.path("/credentials"), credential("email", email(2))).want(t, 201, "").text("id")
	h.complete(email(2), h.outbox.last(email(2)).Code).want(t, 400, "users.invalid_otp")
	h.call(m.token, "PUT", m.path("/credentials/"+second+"/validate"), otp(h.outbox.last(email(2)).Code)).want(t, 200, "")
	h.complete(email(2), h.outbox.last(email(2)).Code).want(t, 400, "users.invalid_otp")
}

func TestRecovery_GuessesExhaustTheCodeSilently(t *testing.T) {
	h := newHarness(t)
	h.customer(email(1))
	h.recover(email(1)).want(t, 200, "")
	code := h.outbox.last(email(1)).Code
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() { h.complete(email(1), wrong(code)) })
	}
	wait.Wait()
	h.complete(email(1), code).want(t, 400, "users.invalid_otp")
	h.recover(email(1)).want(t, 200, "")
	h.clock.Advance(otpLife)
	h.complete(email(1), h.outbox.last(email(1)).Code).want(t, 400, "users.invalid_otp") // too old
}

func TestRecovery_ChecksItsInput(t *testing.T) {
	h := newHarness(t)
	h.recover("").want(t, 400, "common.invalid_input")
	r := h.call("key", "POST", "/v1/users/complete-recovery", map[string]string{"password": "short"}).want(t, 400, "common.invalid_input")
	for _, field := range []string{"credential_value", "otp", "password"} {
		if r.member("details").text(field) == "" {
			t.Errorf("%s is not named in %s", field, r.Text)
		}
	}
}
