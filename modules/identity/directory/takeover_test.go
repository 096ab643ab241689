package directory_test

import (
	"testing"
	"time"
)

// makeStale makes a session require re-authentication, as ten minutes do.
func (h *harness) makeStale(m testUser) {
	h.auth.mu.Lock()
	defer h.auth.mu.Unlock()
	h.auth.stale[m.token] = true
}

// addEmail adds a validated e-mail address to a user and returns the id of the credential.
func (h *harness) addEmail(m testUser, address string) (id string) {
	h.t.Helper()
	id = h.call(m.token, "POST", m.path("/credentials"), credential("email", address)).want(h.t, 201, "").text("id")
	h.call(m.token, "PUT", m.path("/credentials/"+id+"/validate"), otp(h.outbox.last(address).Code)).want(h.t, 200, "")
	return id
}

func TestStolenToken_CannotChangeCredentialsWithoutThePassword(t *testing.T) {
	h := newHarness(t)
	m, other := h.customer(email(1)), h.customer(email(4))
	admin := h.admin()
	claim := h.call(m.token, "POST", m.path("/credentials"), credential("email", email(2))).want(t, 201, "").text("id")
	spare := h.addEmail(m, email(3))
	h.clock.Advance(24 * time.Hour)
	h.call(m.token, "POST", m.path("/credentials/"+claim+"/otp"), nil).want(t, 200, "")
	h.makeStale(m)
	h.makeStale(admin)
	for _, c := range []struct {
		who          testUser
		method, path string
		body         any
	}{
		{m, "POST", m.path("/credentials"), credential("email", email(5))},
		{m, "POST", m.path("/credentials"), credential("username", "anna")},
		{m, "PUT", m.path("/credentials/" + claim + "/validate"), otp(h.outbox.last(email(2)).Code)},
		{m, "DELETE", "/v1/users/credentials/" + spare, nil},
		{m, "DELETE", "/v1/users/credentials/" + claim, nil},
		{admin, "PUT", other.path("/password"), map[string]string{"password": newPassword}},
		{admin, "PUT", other.path("/roles"), map[string]any{"roles": []string{"Administrator"}}},
		{admin, "PUT", other.path("/roles"), map[string]any{"roles": []string{"Advisor"}}},
		{admin, "PATCH", other.path(""), map[string]any{"status": "disabled"}},
		{admin, "POST", other.path("/credentials"), credential("username", "root")},
		{admin, "DELETE", "/v1/users/credentials/" + other.credential, nil},
	} {
		r := h.call(c.who.token, c.method, c.path, c.body).want(t, 401, "auth_m.insufficient_user_authentication")
		if got := r.Header.Get("WWW-Authenticate"); got != `Bearer realm="kontor", error="insufficient_user_authentication", max_age="600"` {
			t.Errorf("%s %s: WWW-Authenticate %q", c.method, c.path, got)
		}
	}
	if list := h.call(m.token, "GET", m.path("/credentials?search.validated=true"), nil); list.Body["total"] != 2.0 {
		t.Errorf("got %s", list.Text)
	}
	// The request contains the password of the user.
	h.call(m.token, "PUT", m.path("/password"), map[string]string{"old_password": password, "password": newPassword}).want(t, 200, "")
}

// A registrant can validate the first credential while the token of the registration is valid.
func TestValidate_FirstCredentialRequiresNoFreshSession(t *testing.T) {
	h := newHarness(t)
	m := h.registrant(email(1))
	h.makeStale(m)
	h.call(m.token, "PUT", m.validate(), otp(h.outbox.last(email(1)).Code)).want(t, 200, "")
	if len(h.outbox.changes) != 0 {
		t.Errorf("the first credential was reported: %v", h.outbox.changes)
	}
	h.recover(email(1)).want(t, 200, "")
	if h.outbox.last(email(1)).Purpose != "recovery" {
		t.Error("the first credential does not recover the account at once")
	}
}

func TestNewCredential_CannotTakeOverTheAccountForADay(t *testing.T) {
	h := newHarness(t)
	m := h.customer(email(1))
	h.addEmail(m, email(2))
	if len(h.outbox.changes) != 1 || h.outbox.changes[0] != "added a…@bank.example "+m.id {
		t.Errorf("reported changes: %v", h.outbox.changes)
	}
	h.clock.Advance(24*time.Hour - time.Millisecond)
	h.recover(email(2)).want(t, 200, "")
	if h.outbox.last(email(2)).Purpose == "recovery" {
		t.Error("a recovery code was sent to the new address")
	}
	h.complete(email(2), "000000").want(t, 400, "users.invalid_otp")
	r := h.call(m.token, "DELETE", "/v1/users/credentials/"+m.credential, nil).want(t, 409, "users.credential_too_new")
	if r.member("details").text("until") != "2026-02-01T08:15:30.123Z" {
		t.Errorf("got %s", r.Text)
	}
	h.clock.Advance(time.Millisecond)
	h.recover(email(2)).want(t, 200, "")
	if h.outbox.last(email(2)).Purpose != "recovery" {
		t.Error("no recovery code was sent after a day")
	}
	h.call(m.token, "DELETE", "/v1/users/credentials/"+m.credential, nil).want(t, 200, "")
	if len(h.outbox.changes) != 2 || h.outbox.changes[1] != "removed a…@bank.example "+m.id {
		t.Errorf("reported changes: %v", h.outbox.changes)
	}

}

// The new credential can be deleted at any time. A later one restarts the day.
func TestNewCredential_CanBeDeletedAtOnce(t *testing.T) {
	h := newHarness(t)
	m := h.customer(email(1))
	second := h.addEmail(m, email(2))
	h.clock.Advance(23 * time.Hour)
	third := h.addEmail(m, email(3))
	h.clock.Advance(time.Hour)
	h.call(m.token, "DELETE", "/v1/users/credentials/"+second, nil).want(t, 409, "users.credential_too_new")
	h.call(m.token, "DELETE", "/v1/users/credentials/"+third, nil).want(t, 200, "")
	h.call(m.token, "DELETE", "/v1/users/credentials/"+m.credential, nil).want(t, 200, "")
}

// A recovery with an older address deletes credentials that are not trusted yet.
func TestRecovery_DeletesUntrustedCredentials(t *testing.T) {
	h := newHarness(t)
	m := h.customer(email(1))
	h.addEmail(m, email(2))
	h.call(m.token, "POST", m.path("/credentials"), credential("username", "intruder")).want(t, 201, "")
	h.call(m.token, "POST", m.path("/credentials"), credential("email", email(3))).want(t, 201, "")
	h.clock.Advance(otpLife)
	h.recover(email(1)).want(t, 200, "")
	h.complete(email(1), h.outbox.last(email(1)).Code).want(t, 200, "")
	var left int
	if err := h.db.QueryRow(t.Context(), `SELECT count(*) FROM credentials WHERE user_id = $1`, m.id).Scan(&left); err != nil || left != 1 {
		t.Errorf("%d credentials are left, %v; want the first one", left, err)
	}
}

func TestAddCredential_RevealsNothingBeforeTheCode(t *testing.T) {
	h := newHarness(t)
	victim, m := h.customer(email(1)), h.customer(email(2))
	h.registrant(email(3)) // claimed, but not validated
	h.clock.Advance(otpLife)
	shape := func(address string) (texts []string, id string) {
		r := h.call(m.token, "POST", m.path("/credentials"), credential("email", address))
		id = r.text("id")
		path := m.path("/credentials/" + id)
		for _, next := range []reply{
			r,
			h.call(m.token, "PUT", path+"/validate", otp("12345x")),
			h.call(m.token, "PUT", path+"/validate", otp(wrong(h.outbox.last(address).Code))),
			h.call(m.token, "POST", path+"/otp", nil),
		} {
			for _, member := range []string{"id", "value"} {
				delete(next.Body, member)
			}
			texts = append(texts, clientView(next))
		}
		return texts, id
	}
	free, _ := shape(email(10))
	taken, id := shape(email(1))
	claimed, _ := shape(email(3))
	for i := range free {
		if taken[i] != free[i] || claimed[i] != free[i] {
			t.Errorf("step %d: got %s for a free value, %s for a taken one, %s for a claimed one", i, free[i], taken[i], claimed[i])
		}
	}
	message := h.outbox.last(email(1))
	if message.Purpose != "taken" || message.UserID != victim.id {
		t.Errorf("the owner of the value got %+v", message)
	}
	// No message to the owner contains a code.
	h.call(m.token, "PUT", m.path("/credentials/"+id+"/validate"), otp(message.Code)).want(t, 400, "users.invalid_otp")
	// The user who validates the value owns it, and the claim is deleted.
	last := h.call(m.token, "GET", m.path("/credentials?sort=-created_at&search.validated=false"), nil)
	for _, row := range last.Body["data"].([]any) {
		if c := row.(map[string]any); c["value"] == email(3) {
			h.call(m.token, "PUT", m.path("/credentials/"+c["id"].(string)+"/validate"), otp(h.outbox.last(email(3)).Code)).want(t, 200, "")
			return
		}
	}
	t.Errorf("the claimed value is not listed: %s", last.Text)
}

// clientView returns the parts of an answer that do not differ between users.
func clientView(r reply) string {
	out := r.text("code")
	for _, member := range []string{"type", "validated", "message", "expires_at", "created_at", "status"} {
		out += " " + member + "=" + text(r.Body[member])
	}
	return out
}

func TestAddCredential_FirstToValidateAValueKeepsIt(t *testing.T) {
	h := newHarness(t)
	m, other := h.customer(email(1)), h.customer(email(2))
	first := h.call(m.token, "POST", m.path("/credentials"), credential("email", email(3))).want(t, 201, "").text("id")
	mine := h.outbox.last(email(3)).Code
	second := h.call(other.token, "POST", other.path("/credentials"), credential("email", email(3))).want(t, 201, "").text("id")
	theirs := h.outbox.last(email(3)).Code
	h.call(other.token, "PUT", other.path("/credentials/"+second+"/validate"), otp(theirs)).want(t, 200, "")
	h.call(m.token, "PUT", m.path("/credentials/"+first+"/validate"), otp(mine)).want(t, 409, "users.credential_exists")
	h.call(m.token, "PUT", m.path("/credentials/"+first+"/validate"), otp(mine)).want(t, 400, "users.invalid_otp") // used up
	if user, err := h.service.Find(t.Context(), h.db, email(3)); err != nil || user.ID != other.id {
		t.Errorf("got %+v, %v", user, err)
	}
}

func TestRegistrant_LosesAClaimToAValidation(t *testing.T) {
	h := newHarness(t)
	m := h.customer(email(1))
	squatter := h.registrant(email(2))
	h.addEmail(m, email(2))
	h.call(squatter.token, "GET", squatter.path("/credentials"), nil).want(t, 401, "common.unauthorized")
	if h.audited("users.abandon", squatter.id) != 1 {
		t.Error("the audit trail lacks the lost claim")
	}
}
