package directory_test

import (
	"sync"
	"testing"
)

func (b *bank) recover(value string) reply {
	return b.call("key", "POST", "/v1/users/initiate-recovery", map[string]string{"credential_value": value})
}

func (b *bank) complete(value, code string) reply {
	return b.call("key", "POST", "/v1/users/complete-recovery", map[string]string{"credential_value": value, "otp": code, "password": newPassword})
}

func TestRecovery_SetsAPasswordAndEndsAllSessions(t *testing.T) {
	b := newBank(t)
	m := b.customer(email(1))
	b.recover(" ANNA.1@BANK.example ").want(t, 200, "")
	message := b.outbox.last(email(1))
	if message.Purpose != "recovery" || b.audited("users.recovery_requested", m.credential) != 1 {
		t.Errorf("got %+v", message)
	}
	b.complete(email(1), wrong(message.Code)).want(t, 400, "users.invalid_otp")
	b.complete(email(1), message.Code).want(t, 200, "")
	if !b.auth.knows(m.id, newPassword) || b.audited("users.password", m.id) != 1 {
		t.Error("the password is not changed, or the audit trail does not tell")
	}
	b.call(m.token, "GET", "/v1/users/me", nil).want(t, 401, "common.unauthorized")
	b.complete(email(1), message.Code).want(t, 400, "users.invalid_otp") // used up
}

func TestRecovery_RevealsNoAccounts(t *testing.T) {
	b := newBank(t)
	admin, disabled := b.admin(), b.customer(email(2))
	b.customer(email(1))
	b.registrant(email(3))
	b.staff("clerk.name", "Advisor")
	b.call(admin.token, "PATCH", disabled.path(""), map[string]string{"status": "disabled"}).want(t, 200, "")
	sent := b.outbox.count(email(2)) + b.outbox.count(email(3))
	b.clock.Advance(otpLife)

	known := []reply{b.recover(email(1)), b.complete(email(1), "000000x"), b.complete(email(1), wrong(b.outbox.last(email(1)).Code))}
	for range 4 {
		known = append(known, b.recover(email(1)))
	}
	for _, value := range []string{"nobody@bank.example", email(2), email(3), "clerk.name", "+41446681800", "no such thing!", admin.id} {
		other := []reply{b.recover(value), b.complete(value, "000000x"), b.complete(value, "000000")}
		for range 4 {
			other = append(other, b.recover(value))
		}
		for i := range known {
			if known[i].Status != other[i].Status || known[i].Text != other[i].Text || known[i].Header.Get("Retry-After") != other[i].Header.Get("Retry-After") {
				t.Errorf("%s, step %d: got %d %s, for a known one %d %s", value, i, other[i].Status, other[i].Text, known[i].Status, known[i].Text)
			}
		}
	}
	if known[0].Status != 200 || known[2].Status != 400 || known[6].Status != 429 {
		t.Errorf("got %d, %d, %d", known[0].Status, known[2].Status, known[6].Status)
	}
	if now := b.outbox.count(email(2)) + b.outbox.count(email(3)); now != sent {
		t.Error("a code went to a user who is disabled or to an address nobody validated")
	}
}

func TestRecovery_RejectsValidationCodes(t *testing.T) {
	b := newBank(t)
	m := b.customer(email(1))
	second := b.call(m.token, "POST", m.path("/credentials"), credential("email", email(2))).want(t, 201, "").text("id")
	b.complete(email(2), b.outbox.last(email(2)).Code).want(t, 400, "users.invalid_otp")
	b.call(m.token, "PUT", m.path("/credentials/"+second+"/validate"), otp(b.outbox.last(email(2)).Code)).want(t, 200, "")
	b.complete(email(2), b.outbox.last(email(2)).Code).want(t, 400, "users.invalid_otp")
}

func TestRecovery_GuessesExhaustTheCodeSilently(t *testing.T) {
	b := newBank(t)
	b.customer(email(1))
	b.recover(email(1)).want(t, 200, "")
	code := b.outbox.last(email(1)).Code
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() { b.complete(email(1), wrong(code)) })
	}
	wait.Wait()
	b.complete(email(1), code).want(t, 400, "users.invalid_otp")
	b.recover(email(1)).want(t, 200, "")
	b.clock.Advance(otpLife)
	b.complete(email(1), b.outbox.last(email(1)).Code).want(t, 400, "users.invalid_otp") // too old
}

func TestRecovery_ChecksItsInput(t *testing.T) {
	b := newBank(t)
	b.recover("").want(t, 400, "common.invalid_input")
	r := b.call("key", "POST", "/v1/users/complete-recovery", map[string]string{"password": "short"}).want(t, 400, "common.invalid_input")
	for _, field := range []string{"credential_value", "otp", "password"} {
		if r.member("details").text(field) == "" {
			t.Errorf("%s is not named in %s", field, r.Text)
		}
	}
	b.call("", "POST", "/v1/users/initiate-recovery", map[string]string{"credential_value": email(1)}).want(t, 401, "common.unauthorized")
}
