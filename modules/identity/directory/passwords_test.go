package directory_test

import (
	"context"
	"testing"

	"kontor/store"
)

const newPassword = "a different long one"

func TestPassword_RequiresTheOldPasswordAndEndsOtherSessions(t *testing.T) {
	h := newHarness(t)
	m := h.customer(email(1))
	var elsewhere string
	h.exec(func(ctx context.Context, tx *store.Tx) (err error) {
		elsewhere, _, err = h.auth.OpenSession(ctx, tx, m.id)
		return err
	})
	change := func(body map[string]any) reply { return h.call(m.token, "PUT", m.path("/password"), body) }
	r := change(map[string]any{"old_password": "wrong", "password": newPassword}).want(t, 400, "common.invalid_input")
	if r.member("details").text("old_password") == "" {
		t.Errorf("got %s", r.Text)
	}
	r = change(map[string]any{"password": "short"}).want(t, 400, "common.invalid_input")
	if details := r.member("details"); details.text("old_password") == "" || details.text("password") == "" {
		t.Errorf("got %s", r.Text)
	}
	change(map[string]any{"old_password": password, "password": email(1)}).want(t, 400, "common.invalid_input")
	h.call(elsewhere, "GET", "/v1/users/me", nil).want(t, 200, "")
	change(map[string]any{"old_password": password, "password": newPassword}).want(t, 200, "")
	if !h.auth.hasPassword(m.id, newPassword) || h.audited("users.password", m.id) != 1 {
		t.Error("the password is not changed, or the audit trail lacks the change")
	}
	h.call(m.token, "GET", "/v1/users/me", nil).want(t, 200, "")
	h.call(elsewhere, "GET", "/v1/users/me", nil).want(t, 401, "common.unauthorized")
}

func TestPassword_OfOthersRequiresAnAdministrator(t *testing.T) {
	h := newHarness(t)
	admin, clerk, m := h.admin(), h.personnel(), h.customer(email(1))
	body := map[string]any{"password": newPassword}
	h.call(clerk.token, "PUT", admin.path("/password"), body).want(t, 403, "common.rbac_no_rec_access")
	h.call(clerk.token, "PUT", "/v1/users/0193b000-0000-7000-8000-00000000abcd/password", body).want(t, 404, "users.user_not_found")
	h.call(admin.token, "PUT", "/v1/users/0193b000-0000-7000-8000-00000000abcd/password", body).want(t, 404, "users.user_not_found")
	h.call(admin.token, "PUT", m.path("/password"), body, "If-Match", `"7"`).want(t, 412, "common.precondition_failed")
	h.call(admin.token, "PUT", m.path("/password"), body).want(t, 200, "")
	if !h.auth.hasPassword(m.id, newPassword) {
		t.Error("the password is not changed")
	}
	h.call(m.token, "GET", "/v1/users/me", nil).want(t, 401, "common.unauthorized")
	h.call(admin.token, "PUT", admin.path("/password"), body).want(t, 400, "common.invalid_input") // changing one's own password needs the old one
}

func TestPassword_ChangeDeletesRecoveryCodes(t *testing.T) {
	h := newHarness(t)
	m := h.customer(email(1))
	h.call("key", "POST", "/v1/users/initiate-recovery", map[string]string{"credential_value": email(1)}).want(t, 200, "")
	code := h.outbox.last(email(1)).Code
	h.call(m.token, "PUT", m.path("/password"), map[string]any{"old_password": password, "password": newPassword}).want(t, 200, "")
	h.call("key", "POST", "/v1/users/complete-recovery",
		map[string]string{"credential_value": email(1), "otp": code, "password": password}).want(t, 400, "users.invalid_otp")
}
