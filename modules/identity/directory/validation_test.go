package directory_test

import (
	"sync"
	"testing"
	"time"
)

func (m testUser) validate() string { return m.path("/credentials/" + m.credential + "/validate") }
func (m testUser) resend() string   { return m.path("/credentials/" + m.credential + "/otp") }

func otp(code string) map[string]string { return map[string]string{"otp": code} }

func TestValidate_ActivatesTheUserAsCustomer(t *testing.T) {
	h := newHarness(t)
	m := h.registrant(email(1))
	code := h.outbox.last(email(1)).Code
	r := h.call(m.token, "PUT", m.validate(), otp(" "+code[:3]+" "+code[3:])).want(t, 200, "")
	if r.Body["validated"] != true || r.text("validated_at") != "2026-01-31T08:15:30.123Z" || r.text("id") != m.credential {
		t.Errorf("got %s", r.Text)
	}
	me := h.call(m.token, "GET", "/v1/users/me", nil).want(t, 200, "") // with the session of the registration
	if me.text("status") != "active" || me.Body["roles"].([]any)[0] != "Customer" || len(me.Body["roles"].([]any)) != 1 {
		t.Errorf("got %s", me.Text)
	}
	if len(h.auth.changed) != 1 || h.auth.changed[0] != m.id {
		t.Errorf("users whose sessions were updated: %v", h.auth.changed)
	}
	if h.audited("credentials.validate", m.credential) != 1 || h.audited("users.status", m.id) != 1 {
		t.Error("the audit trail lacks the change")
	}
	h.call(m.token, "PUT", m.validate(), otp(code)).want(t, 409, "users.credential_validated")
	h.call(m.token, "POST", m.resend(), nil).want(t, 409, "users.credential_validated")
}

func TestValidate_RejectsTheRightCodeAfterFiveAttempts(t *testing.T) {
	h := newHarness(t)
	m := h.registrant(email(1))
	code := h.outbox.last(email(1)).Code
	for range 5 {
		h.call(m.token, "PUT", m.validate(), otp(wrong(code))).want(t, 400, "users.invalid_otp")
	}
	r := h.call(m.token, "PUT", m.validate(), otp(code)).want(t, 429, "users.otp_attempts_exceeded")
	if r.Header.Get("Retry-After") == "" {
		t.Error("429 without Retry-After")
	}
	h.call(m.token, "POST", m.resend(), nil).want(t, 200, "")
	h.call(m.token, "PUT", m.validate(), otp(h.outbox.last(email(1)).Code)).want(t, 200, "")
}

func TestValidate_ParallelGuessesHaveFiveAttempts(t *testing.T) {
	h := newHarness(t)
	m := h.registrant(email(1))
	code := h.outbox.last(email(1)).Code
	const guesses = 40
	var mu sync.Mutex
	answers := map[string]int{}
	var wait sync.WaitGroup
	for range guesses {
		wait.Go(func() {
			r := h.call(m.token, "PUT", m.validate(), otp(wrong(code)))
			mu.Lock()
			defer mu.Unlock()
			answers[r.text("code")]++
		})
	}
	wait.Wait()
	if answers["users.invalid_otp"] != 5 || answers["users.otp_attempts_exceeded"] != guesses-5 {
		t.Errorf("got %v, want five tries", answers)
	}
}

func TestValidate_AcceptsARightCodeOnceInParallel(t *testing.T) {
	h := newHarness(t)
	m := h.registrant(email(1))
	code := h.outbox.last(email(1)).Code
	var mu sync.Mutex
	statuses := map[int]int{}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			r := h.call(m.token, "PUT", m.validate(), otp(code))
			mu.Lock()
			defer mu.Unlock()
			statuses[r.Status]++
		})
	}
	wait.Wait()
	if statuses[200] != 1 || statuses[409]+statuses[403] != 3 { // 403: the token of the registration has ended with it
		t.Errorf("got %v, want one success", statuses)
	}
}

func TestValidate_RejectsExpiredAndReplacedCodes(t *testing.T) {
	h := newHarness(t)
	m := h.registrant(email(1))
	first := h.outbox.last(email(1)).Code
	h.clock.Advance(otpLife)
	h.call(m.token, "PUT", m.validate(), otp(first)).want(t, 400, "users.otp_expired")
	r := h.call(m.token, "POST", m.resend(), nil).want(t, 200, "")
	if r.text("expires_at") != "2026-01-31T08:35:30.123Z" || r.text("message") == "" {
		t.Errorf("got %s", r.Text)
	}
	second := h.outbox.last(email(1)).Code
	if first != second {
		h.call(m.token, "PUT", m.validate(), otp(first)).want(t, 400, "users.invalid_otp")
	}
	h.clock.Advance(otpLife - time.Millisecond)
	h.call(m.token, "PUT", m.validate(), otp(second)).want(t, 200, "")
}

func TestValidate_MalformedCodesAreNoAttempts(t *testing.T) {
	h := newHarness(t)
	m := h.registrant(email(1))
	for _, text := range []string{"12345", "1234567", "abcdef", "１２３４５６", "12345x", "-1", "000000000000000000000000000000000000000"} {
		h.call(m.token, "PUT", m.validate(), otp(text)).want(t, 400, "users.invalid_otp")
	}
	for _, body := range []map[string]any{{}, {"otp": ""}, {"otp": 123456}, {"otp": nil}} {
		r := h.call(m.token, "PUT", m.validate(), body).want(t, 400, "common.invalid_input")
		if r.member("details").text("otp") == "" {
			t.Errorf("the field is not named in %s", r.Text)
		}
	}
	// None of these counted as an attempt.
	h.call(m.token, "PUT", m.validate(), otp(h.outbox.last(email(1)).Code)).want(t, 200, "")
}

func TestValidate_RequiresTheOwner(t *testing.T) {
	h := newHarness(t)
	m, stranger := h.registrant(email(1)), h.registrant(email(2))
	code := h.outbox.last(email(1)).Code
	h.call(stranger.token, "PUT", m.validate(), otp(code)).want(t, 403, "common.rbac_no_rec_access")
	h.call(stranger.token, "POST", m.resend(), nil).want(t, 403, "common.rbac_no_rec_access")
	h.call(stranger.token, "PUT", stranger.path("/credentials/"+m.credential+"/validate"), otp(code)).want(t, 404, "users.credential_not_found")
	nobody := "0193b000-0000-7000-8000-00000000abcd"
	h.call(m.token, "PUT", "/v1/users/"+nobody+"/credentials/"+m.credential+"/validate", otp(code)).want(t, 404, "users.user_not_found")
	h.call(m.token, "PUT", m.path("/credentials/"+nobody+"/validate"), otp(code)).want(t, 404, "users.credential_not_found")
	h.call(m.token, "PUT", m.path("/credentials/x/validate"), otp(code)).want(t, 400, "common.invalid_input")
	h.call("", "PUT", m.validate(), otp(code)).want(t, 401, "common.unauthorized")
	h.call(m.token, "PUT", m.validate(), otp(code), "If-Match", `"7"`).want(t, 412, "common.precondition_failed")
	h.call(m.token, "PUT", m.validate(), otp(code), "If-Match", `"v1"`).want(t, 200, "")
}

func TestResend_LimitsEachTarget(t *testing.T) {
	h := newHarness(t)
	m := h.registrant(email(1))
	h.call(m.token, "POST", m.resend(), nil).want(t, 200, "")
	h.clock.Advance(time.Minute)
	h.call(m.token, "POST", m.resend(), nil).want(t, 200, "")
	r := h.call(m.token, "POST", m.resend(), nil).want(t, 429, "users.otp_send_limited")
	if r.Header.Get("Retry-After") != "540" {
		t.Errorf("Retry-After is %s, want nine minutes: the first code was sent a minute ago", r.Header.Get("Retry-After"))
	}
	if h.outbox.count(email(1)) != 3 {
		t.Errorf("%d codes were sent", h.outbox.count(email(1)))
	}
	h.registrant(email(2)) // another target has a limit of its own
	h.clock.Advance(9 * time.Minute)
	h.call(m.token, "POST", m.resend(), nil).want(t, 200, "")
}

func TestResend_IsLimitedInParallel(t *testing.T) {
	h := newHarness(t)
	m := h.registrant(email(1))
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() { h.call(m.token, "POST", m.resend(), nil) })
	}
	wait.Wait()
	if n := h.outbox.count(email(1)); n != 3 {
		t.Errorf("%d codes were sent, want 3", n)
	}
}
