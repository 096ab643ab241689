package directory_test

import (
	"strings"
	"sync"
	"testing"
	"time"
)

const registerPath = "/v1/users/initiate-registration"

func TestRegister_CreatesAPendingUserWithAToken(t *testing.T) {
	h := newHarness(t)
	r := h.call("key", "POST", registerPath, registration("email", " Anna@Bank.Example "), "Accept-Language", "fr").want(t, 201, "")
	c := r.member("credential")
	if r.text("token_type") != "Bearer" || r.text("access_token") == "" || r.Body["expires_in"] != 3600.0 {
		t.Errorf("got %s, want a bearer token", r.Text)
	}
	if c.text("type") != "email" || c.text("value") != "Anna@Bank.Example" || c.Body["validated"] != false || c.Body["validated_at"] != nil ||
		c.text("user_id") != r.text("user_id") {
		t.Errorf("got credential %v", c.Body)
	}
	if strings.Contains(r.Text, "hash") || strings.Contains(r.Text, h.outbox.last("Anna@Bank.Example").Code) {
		t.Errorf("the answer shows a secret: %s", r.Text)
	}
	m := h.outbox.last("Anna@Bank.Example")
	if m.Channel != "email" || m.Language != "fr" || m.Purpose != "registration" || m.Path != "/register#confirm=Anna%40Bank.Example" || len(m.Code) != 6 || m.Minutes != 10 || m.UserID != r.text("user_id") {
		t.Errorf("got message %+v", m)
	}
	user, err := h.service.Find(t.Context(), h.db, r.text("user_id"))
	if err != nil || user.Status != "pending" || user.Language != "fr" || len(user.Roles) != 1 || user.Roles[0] != "Registrant" {
		t.Errorf("got user %+v, %v", user, err)
	}
	if !h.auth.hasPassword(user.ID, password) {
		t.Error("the password is not set")
	}
	if h.audited("users.create", user.ID) != 1 || h.audited("credentials.create", c.text("id")) != 1 {
		t.Error("the audit trail lacks the user or the credential")
	}
}

func TestRegister_ReportsAllInvalidFields(t *testing.T) {
	h := newHarness(t)
	r := h.call("key", "POST", registerPath, map[string]any{"credential_type": "email", "credential_value": "anna@", "password": "short",
		"terms_accepted": false}).want(t, 400, "common.invalid_input")
	for _, field := range []string{"credential_value", "password", "terms_accepted", "privacy_policy_accepted"} {
		if r.member("details").text(field) == "" {
			t.Errorf("%s is not named in %s", field, r.Text)
		}
	}
	r = h.call("key", "POST", registerPath, map[string]any{}).want(t, 400, "common.invalid_input")
	if r.member("details").text("credential_type") == "" || r.member("details").text("credential_value") == "" {
		t.Errorf("without a type the missing value is not named in %s", r.Text)
	}
	r = h.call("key", "POST", registerPath, registration("fax", "1")).want(t, 400, "common.invalid_input")
	if r.member("details").text("credential_type") == "" {
		t.Errorf("the type is not named in %s", r.Text)
	}
	r = h.call("key", "POST", registerPath, registration("email", password+"@bank.example")).want(t, 400, "common.invalid_input")
	if r.member("details").text("credential_value") == "" {
		t.Errorf("an address with spaces was accepted: %s", r.Text)
	}
}

func TestRegister_RejectsInvalidPhonesAndUserNames(t *testing.T) {
	h := newHarness(t)
	for kind, values := range map[string][]string{
		"phone":    {"044 668 18 00", "+41 1", "phone", ""},
		"username": {"ab", "1anna", "an na", "anna@x", "änna", "a" + strings.Repeat("b", 64), "abcdefab-1234-1234-1234-123456789abc"},
	} {
		for _, value := range values {
			h.call("key", "POST", registerPath, registration(kind, value)).want(t, 400, "common.invalid_input")
		}
	}
}

func TestRegister_ByPhoneSendsAnSMS(t *testing.T) {
	h := newHarness(t)
	r := h.call("key", "POST", registerPath, registration("phone", "+41 44 668 18 00")).want(t, 201, "")
	if r.member("credential").text("value") != "+41446681800" || h.outbox.last("+41446681800").Channel != "sms" {
		t.Errorf("got %s and %+v", r.Text, h.outbox.last("+41446681800"))
	}
}

func TestRegister_ByUserNameStaysPending(t *testing.T) {
	h := newHarness(t)
	r := h.call("key", "POST", registerPath, registration("username", "Anna.Muster")).want(t, 201, "")
	if r.member("credential").Body["validated"] != true || len(h.outbox.sent) != 0 {
		t.Errorf("got %s and messages %v", r.Text, h.outbox.sent)
	}
	user, err := h.service.Find(t.Context(), h.db, "anna.muster")
	if err != nil || user.Status != "pending" || user.Roles[0] != "Registrant" {
		t.Errorf("got %+v, %v", user, err)
	}
	h.call("key", "POST", registerPath, registration("username", "anna.MUSTER")).want(t, 409, "users.credential_exists")
	// An administrator activates the user.
	admin := h.admin()
	u := h.call(admin.token, "PATCH", "/v1/users/"+user.ID, map[string]string{"status": "active"}).want(t, 200, "")
	if u.text("status") != "active" || u.Body["roles"].([]any)[0] != "Customer" {
		t.Errorf("got %s, want an active customer", u.Text)
	}
}

func TestRegister_RequiresAnAPIKey(t *testing.T) {
	h := newHarness(t)
	h.call("", "POST", registerPath, registration("email", email(1))).want(t, 401, "common.unauthorized")
	h.call(h.admin().token, "POST", registerPath, registration("email", email(1))).want(t, 401, "common.unauthorized")
}

func TestRegister_InParallelCreatesOneUser(t *testing.T) {
	h := newHarness(t)
	const clients = 16
	var mu sync.Mutex
	statuses := map[int]int{}
	var wait sync.WaitGroup
	for range clients {
		wait.Go(func() {
			r := h.call("key", "POST", registerPath, registration("email", email(1)))
			mu.Lock()
			defer mu.Unlock()
			statuses[r.Status]++
		})
	}
	wait.Wait()
	if statuses[201] != 1 || statuses[409] != clients-1 {
		t.Errorf("got %v, want one 201 and the rest 409", statuses)
	}
	var n int
	if err := h.db.QueryRow(t.Context(), `SELECT count(*) FROM users`).Scan(&n); err != nil || n != 1 {
		t.Errorf("%d users are stored, %v", n, err)
	}
}

func TestRegister_TakesOverOldClaimsButNoValidatedValues(t *testing.T) {
	h := newHarness(t)
	squatter := h.registrant(email(1))
	h.clock.Advance(otpLife - time.Millisecond)
	// A new code does not extend the claim.
	h.call(squatter.token, "POST", squatter.path("/credentials/"+squatter.credential+"/otp"), nil).want(t, 200, "")
	h.call("key", "POST", registerPath, registration("email", strings.ToUpper(email(1)))).want(t, 409, "users.credential_exists")
	h.clock.Advance(time.Millisecond)
	owner := h.customer(email(1))

	if user, err := h.service.Find(t.Context(), h.db, squatter.id); err != nil || user.Status != "disabled" {
		t.Errorf("the squatter is %+v, %v", user, err)
	}
	if h.audited("users.abandon", squatter.id) != 1 || h.audited("credentials.delete", squatter.credential) != 1 {
		t.Error("the audit trail lacks the lost claim")
	}
	h.call(squatter.token, "GET", squatter.path("/credentials"), nil).want(t, 401, "common.unauthorized")
	h.clock.Advance(24 * time.Hour)
	h.call("key", "POST", registerPath, registration("email", email(1))).want(t, 409, "users.credential_exists")
	h.call(owner.token, "GET", "/v1/users/me", nil).want(t, 200, "")
}

func TestRegistrant_MayOnlyUseTheirCredentialsAndReadThemselves(t *testing.T) {
	h := newHarness(t)
	m := h.registrant(email(1))
	list := h.call(m.token, "GET", m.path("/credentials"), nil).want(t, 200, "")
	if list.Body["total"] != 1.0 || list.Body["has_more"] != false {
		t.Errorf("got %s", list.Text)
	}
	if self := h.call(m.token, "GET", "/v1/users/me", nil).want(t, 200, ""); self.Body["id"] != m.id || self.Body["status"] != "pending" {
		t.Errorf("got %s", self.Text)
	}
	for _, rejected := range [][2]string{{"GET", "/v1/users"}, {"GET", m.path("")}, {"PATCH", m.path("")},
		{"PUT", m.path("/password")}, {"PUT", m.path("/roles")}, {"POST", m.path("/credentials")},
		{"DELETE", "/v1/users/credentials/" + m.credential}} {
		h.call(m.token, rejected[0], rejected[1], map[string]any{}).want(t, 403, "common.rbac_no_rec_access")
	}
}

func TestRegister_IsIdempotentWithAKey(t *testing.T) {
	h := newHarness(t)
	first := h.call("key", "POST", registerPath, registration("email", email(1)), "Idempotency-Key", "once").want(t, 201, "")
	again := h.call("key", "POST", registerPath, registration("email", email(1)), "Idempotency-Key", "once").want(t, 201, "")
	if first.Text != again.Text || h.outbox.count(email(1)) != 1 {
		t.Errorf("got %s, then %s", first.Text, again.Text)
	}
	h.call("key", "POST", registerPath, registration("email", email(2)), "Idempotency-Key", "once").want(t, 422, "common.idempotency_mismatch")
	m := testUser{id: first.text("user_id"), token: first.text("access_token"), credential: first.member("credential").text("id")}
	h.call(m.token, "PUT", m.validate(), otp(h.outbox.last(email(1)).Code)).want(t, 200, "")
	add := func() reply {
		return h.call(m.token, "POST", m.path("/credentials"), credential("username", "anna"), "Idempotency-Key", "twice").want(t, 201, "")
	}
	if first, again := add(), add(); first.Text != again.Text {
		t.Errorf("got %s, then %s", first.Text, again.Text)
	}
}
