package directory_test

import (
	"strings"
	"sync"
	"testing"

	"kontor/modules/identity/directory"
)

func (h *harness) completeRegistration(value, code, password string) reply {
	return h.call("", "POST", "/v1/users/complete-registration", map[string]string{"credential_value": value, "otp": code, "password": password})
}

func (h *harness) resendRegistration(value string) reply {
	return h.call("", "POST", "/v1/users/resend-registration-code", map[string]string{"credential_value": value})
}

func TestCompleteRegistration_NeedsNoToken(t *testing.T) {
	h := newHarness(t)
	m := h.registrant(email(1))
	first := h.outbox.last(email(1))
	h.completeRegistration(email(1), wrong(first.Code), password).want(t, 400, "users.invalid_otp")
	h.resendRegistration(" ANNA.1@BANK.example ").want(t, 200, "")
	second := h.outbox.last(email(1))
	if second.Purpose != "registration" || !strings.Contains(second.Path, "/register#confirm=") || second.Code == first.Code {
		t.Errorf("got %+v, want a new code with a link", second)
	}
	h.completeRegistration(email(1), first.Code, password).want(t, 400, "users.invalid_otp")
	h.completeRegistration(email(1), " "+second.Code[:3]+" "+second.Code[3:], password).want(t, 200, "")
	user, err := h.service.Find(t.Context(), h.db, m.id)
	if err != nil || user.Status != "active" || len(user.Roles) != 1 || user.Roles[0] != "Customer" {
		t.Errorf("got %+v, %v, want an active customer", user, err)
	}
	if h.audited("credentials.validate", m.credential) != 1 {
		t.Error("the audit trail lacks the validation")
	}
	h.completeRegistration(email(1), second.Code, password).want(t, 400, "users.invalid_otp") // no registration any more
}

// An attacker registers the address of another person. Its owner gets the code, but must not activate an account with the password of
// the attacker. Nor can the attacker, who does not get the code.
func TestCompleteRegistration_NeedsPasswordAndCode(t *testing.T) {
	h := newHarness(t)
	m := h.registrant(email(1))
	code := h.outbox.last(email(1)).Code
	for range 10 {
		h.completeRegistration(email(1), code, "another long password").want(t, 400, "users.invalid_otp")
	}
	// Wrong passwords use up no attempts of the code.
	for range 5 {
		h.completeRegistration(email(1), wrong(code), password).want(t, 400, "users.invalid_otp")
	}
	h.completeRegistration(email(1), code, password).want(t, 429, "users.otp_attempts_exceeded")
	h.resendRegistration(email(1)).want(t, 200, "")
	h.clock.Advance(otpLife)
	h.completeRegistration(email(1), h.outbox.last(email(1)).Code, password).want(t, 400, "users.otp_expired")
	if user, err := h.service.Find(t.Context(), h.db, m.id); err != nil || user.Status != "pending" {
		t.Errorf("got %+v, %v, want a pending user", user, err)
	}
}

func TestCompleteRegistration_RevealsNoAccounts(t *testing.T) {
	h := newHarness(t)
	h.registrant(email(1))
	h.customer(email(2))
	h.clock.Advance(otpLife)
	steps := func(value string) (all []reply) {
		all = append(all, h.completeRegistration(value, "000000", "a wrong password"), h.completeRegistration(value, "x", "a wrong password"))
		for range 4 {
			all = append(all, h.resendRegistration(value))
		}
		return all
	}
	sent := h.outbox.count(email(2))
	known := steps(email(1))
	for _, value := range []string{"nobody@bank.example", email(2), "+41446681800", "no such thing!"} {
		for i, other := range steps(value) {
			if known[i].Status != other.Status || known[i].Text != other.Text || known[i].Header.Get("Retry-After") != other.Header.Get("Retry-After") {
				t.Errorf("%s, step %d: got %d %s, for a registration %d %s", value, i, other.Status, other.Text, known[i].Status, known[i].Text)
			}
		}
	}
	if known[0].Status != 400 || known[2].Status != 200 || known[5].Status != 429 {
		t.Errorf("got %d, %d, %d, want 400, 200, 429", known[0].Status, known[2].Status, known[5].Status)
	}
	if now := h.outbox.count(email(2)); now != sent {
		t.Error("a code was sent to a user who is active")
	}
}

func TestCompleteRegistration_LimitsTheNetwork(t *testing.T) {
	const perHour = 8
	h := newHarnessWith(t, directory.Options{PerHour: perHour})
	h.registrant(email(1))
	code := h.outbox.last(email(1)).Code
	for i := range perHour {
		h.completeRegistration(email(i), "000000", "a wrong password").want(t, 400, "users.invalid_otp")
	}
	limited := h.completeRegistration(email(1), code, password).want(t, 429, "rate_limits_m.exceeded")
	if limited.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	h.complete(email(1), "000000").want(t, 429, "rate_limits_m.exceeded")
	if got := h.call("", "POST", "/v1/users/complete-registration", map[string]string{}); got.Status != 400 {
		t.Errorf("empty: %d, want 400", got.Status)
	}
}

func TestCompleteRegistration_SucceedsOnce(t *testing.T) {
	h := newHarness(t)
	h.registrant(email(1))
	code := h.outbox.last(email(1)).Code
	var wait sync.WaitGroup
	outcomes := make(chan int, 10)
	for range 10 {
		wait.Go(func() { outcomes <- h.completeRegistration(email(1), code, password).Status })
	}
	wait.Wait()
	close(outcomes)
	successes := 0
	for status := range outcomes {
		if status == 200 {
			successes++
		}
	}
	if successes != 1 {
		t.Errorf("%d successes, want 1", successes)
	}
}
