package directory_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"kontor/modules/identity/directory"
	"kontor/store"
)

func text(value any) string { return fmt.Sprint(value) }

// Adding and deleting credentials sends few messages.
func TestSendLimits_OfAUser(t *testing.T) {
	h := newHarness(t)
	m := h.customer(email(1))
	sent := 0
	for i := range 120 {
		r := h.call(m.token, "POST", m.path("/credentials"), credential("phone", fmt.Sprintf("+4179%07d", 5550000+i)))
		if r.Status != 201 {
			r.want(t, 429, "users.otp_send_limited")
			continue
		}
		sent++
		h.call(m.token, "DELETE", "/v1/users/credentials/"+r.text("id"), nil).want(t, 200, "")
	}
	if sent != 10 {
		t.Errorf("%d messages were sent in an hour, want 10", sent)
	}
	for range 3 { // in the hours after that
		h.clock.Advance(time.Hour)
		for i := range 20 {
			if r := h.call(m.token, "POST", m.path("/credentials"), credential("phone", fmt.Sprintf("+4176%07d", 5550000+sent+i))); r.Status == 201 {
				sent++
				h.call(m.token, "DELETE", "/v1/users/credentials/"+r.text("id"), nil).want(t, 200, "")
			}
		}
	}
	if sent != 30 {
		t.Errorf("%d messages were sent in a day, want 30", sent)
	}
}

func TestSendLimits_OfATargetInADay(t *testing.T) {
	h := newHarness(t)
	h.customer(email(1))
	m := h.customer(email(2))
	for range 40 {
		h.call(m.token, "POST", m.path("/credentials"), credential("email", email(1)))
		h.clock.Advance(10 * time.Minute)
		h.recover(email(1))
		h.clock.Advance(10 * time.Minute)
		h.exec(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `DELETE FROM otps WHERE purpose = 'validation'`)
			if err == nil {
				_, err = tx.Exec(ctx, `DELETE FROM credentials WHERE user_id = $1 AND validated = FALSE`, m.id)
			}
			return err
		})
	}
	sent := map[string]int{}
	for _, message := range h.outbox.sent {
		if message.Recipient == email(1) {
			sent[message.Purpose]++
		}
	}
	if sent["recovery"] != 30 || sent["taken"] != 9 { // the registration was the tenth
		t.Errorf("got %v", sent)
	}
}

func TestSendLimits_OfANetworkAndAKey(t *testing.T) {
	h := newHarnessWith(t, directory.Options{PerHour: 20})
	for i := range 200 {
		r := h.recover(fmt.Sprintf("nobody%d@bank.example", i))
		if want := map[bool]int{true: 200, false: 429}[i < 20]; r.Status != want {
			t.Fatalf("recovery %d: got %d, want %d", i, r.Status, want)
		}
	}
	r := h.recover("somebody@bank.example").want(t, 429, "users.otp_send_limited")
	if r.Header.Get("Retry-After") != "3600" {
		t.Errorf("Retry-After %s", r.Header.Get("Retry-After"))
	}
	h.clock.Advance(time.Hour)
	h.recover("somebody@bank.example").want(t, 200, "")
}

func TestRegistrationLimits_PreventProbing(t *testing.T) {
	h := newHarnessWith(t, directory.Options{PerHour: 20})
	h.customer(email(1)) // counts as one of the twenty
	probed := 0
	for range 100 {
		if r := h.call("key", "POST", registerPath, registration("email", email(1))); r.Status == 409 {
			probed++
		} else if r.want(t, 429, "rate_limits_m.exceeded").Header.Get("Retry-After") == "" {
			t.Error("429 without Retry-After")
		}
	}
	if probed != 10 {
		t.Errorf("%d probes revealed that a value is taken, want 10", probed)
	}
	// Free values reveal nothing either.
	h.call("key", "POST", registerPath, registration("username", "free.name")).want(t, 429, "rate_limits_m.exceeded")
	h.clock.Advance(time.Hour)
	for i := range 40 {
		r := h.call("key", "POST", registerPath, registration("username", fmt.Sprintf("name%d", i)))
		if want := map[bool]int{true: 201, false: 429}[i < 30]; r.Status != want {
			t.Fatalf("registration %d: got %d, want %d", i, r.Status, want)
		}
	}
}

// One application registers many users, who all validate their addresses. SMS are more expensive than e-mails.
func TestRegistrationLimits_AllowManyRegistrationsByOneApplication(t *testing.T) {
	h := newHarnessWith(t, directory.Options{PerHour: 20})
	for i := range 25 {
		h.call("key", "POST", registerPath, registration("email", email(i))).want(t, 201, "")
	}
	h.recover("somebody@bank.example").want(t, 200, "")
	h = newHarnessWith(t, directory.Options{PerHour: 20})
	for i := range 25 {
		r := h.call("key", "POST", registerPath, registration("phone", fmt.Sprintf("+4179%07d", 5550000+i)))
		if want := map[bool]int{true: 201, false: 429}[i < 20]; r.Status != want {
			t.Fatalf("registration %d by phone: got %d, want %d", i, r.Status, want)
		}
	}
}

func TestAddUsername_LimitsAttempts(t *testing.T) {
	h := newHarness(t)
	m := h.customer(email(1))
	h.staff("clerk.name", "Advisor")
	rejected := 0
	for range 30 {
		if h.call(m.token, "POST", m.path("/credentials"), credential("username", "clerk.name")).Status == 409 {
			rejected++
		}
	}
	if rejected != 10 {
		t.Errorf("%d names were compared, want 10", rejected)
	}
}

// After many wrong codes of all users, each code has one attempt. A fifth of the guesses remains, and the right code is
// accepted.
func TestFailedCodes_LeaveOneAttemptToEachCode(t *testing.T) {
	h := newHarness(t)
	h.exec(func(ctx context.Context, tx *store.Tx) error {
		for range 999 {
			if err := h.service.CountFailure(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
	first, second := h.registrant(email(1)), h.registrant(email(2))
	h.call(first.token, "PUT", first.validate(), otp(wrong(h.outbox.last(email(1)).Code))).want(t, 400, "users.invalid_otp")
	h.call(first.token, "PUT", first.validate(), otp(h.outbox.last(email(1)).Code)).want(t, 429, "users.otp_attempts_exceeded")
	h.call(second.token, "PUT", second.validate(), otp(h.outbox.last(email(2)).Code)).want(t, 200, "")
	h.clock.Advance(time.Hour)
	if err := h.service.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.call(first.token, "POST", first.resend(), nil).want(t, 200, "")
	h.call(first.token, "PUT", first.validate(), otp(wrong(h.outbox.last(email(1)).Code))).want(t, 400, "users.invalid_otp")
	h.call(first.token, "PUT", first.validate(), otp(h.outbox.last(email(1)).Code)).want(t, 200, "")
}

func TestSendLimits_AreExactInParallel(t *testing.T) {
	h := newHarnessWith(t, directory.Options{PerHour: 5})
	var wait sync.WaitGroup
	var mu sync.Mutex
	sent := 0
	for i := range 40 {
		wait.Go(func() {
			if h.recover(email(100+i)).Status == 200 {
				mu.Lock()
				defer mu.Unlock()
				sent++
			}
		})
	}
	wait.Wait()
	if sent != 5 {
		t.Errorf("%d passed, want 5", sent)
	}
}

// Events from before a step back of the clock count as of the step.
func TestSendLimits_CountEventsInTheFutureAsNow(t *testing.T) {
	h := newHarness(t)
	m := h.registrant(email(1))
	h.call(m.token, "POST", m.resend(), nil).want(t, 200, "")
	h.call(m.token, "POST", m.resend(), nil).want(t, 200, "")
	h.clock.Advance(-24 * time.Hour)
	h.call(m.token, "POST", m.resend(), nil).want(t, 429, "users.otp_send_limited")
	h.clock.Advance(time.Hour)
	h.call(m.token, "POST", m.resend(), nil).want(t, 200, "")
}

// A rejection writes nothing: the rollback would affect the other jobs of its group.
func TestSendLimits_RejectBeforeWriting(t *testing.T) {
	h := newHarness(t)
	m := h.registrant(email(1))
	for range 2 {
		h.call(m.token, "POST", m.resend(), nil).want(t, 200, "")
	}
	h.clock.Advance(5 * time.Minute)
	before, err := h.db.Version(t.Context(), "otp_sends", "otps")
	h.call(m.token, "POST", m.resend(), nil).want(t, 429, "users.otp_send_limited")
	if after, errAfter := h.db.Version(t.Context(), "otp_sends", "otps"); err != nil || errAfter != nil || after != before {
		t.Errorf("a rejection wrote: version %d, then %d, errors %v and %v", before, after, err, errAfter)
	}
}

func TestPurge_DeletesEventsOutsideAllWindows(t *testing.T) {
	h := newHarness(t)
	h.registrant(email(1))
	rows := func() (n int) {
		if err := h.db.QueryRow(t.Context(), `SELECT count(*) FROM otp_sends`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if rows() == 0 {
		t.Fatal("no event was counted: the test proves nothing")
	}
	h.clock.Advance(24 * time.Hour)
	if err := h.service.Purge(t.Context()); err != nil || rows() != 0 {
		t.Errorf("%d rows, %v", rows(), err)
	}
}
