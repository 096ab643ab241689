package directory_test

import (
	"errors"
	"testing"

	"kontor/modules/identity/directory"
	"kontor/server/apierr"
)

func TestCreate_CreatesAnActiveUser(t *testing.T) {
	h := newHarness(t)
	u, err := h.service.Create(t.Context(), directory.NewUser{Value: "Boss@bank.example", Password: password, Roles: []string{"administrator", "Advisor"}, Language: "de"})
	if err != nil || u.Status != "active" || u.Language != "de" || len(u.Roles) != 2 || !h.auth.hasPassword(u.ID, password) {
		t.Fatalf("got %+v, %v", u, err)
	}
	if len(h.outbox.sent) != 0 || h.audited("users.create", u.ID) != 1 {
		t.Error("a code was sent, or the audit trail lacks the user")
	}
	found, err := h.service.Find(t.Context(), h.db, "BOSS@bank.example")
	if err != nil || found.ID != u.ID {
		t.Errorf("found %+v, %v", found, err)
	}
}

func TestCreate_RejectsInvalidInput(t *testing.T) {
	h := newHarness(t)
	h.admin()
	for want, n := range map[apierr.Kind]directory.NewUser{
		apierr.CredentialExists: {Value: "root@bank.example", Password: password, Roles: []string{"Advisor"}},
		apierr.InvalidInput:     {Value: "other", Password: password, Roles: []string{"Emperor"}},
	} {
		if _, err := h.service.Create(t.Context(), n); !errors.Is(err, want) {
			t.Errorf("got %v, want %s", err, want.Code)
		}
	}
	if _, err := h.service.Create(t.Context(), directory.NewUser{Value: "x", Password: "short", Language: "rm"}); err == nil {
		t.Error("a user with invalid language, name and password was created")
	}
	var n int
	if err := h.db.QueryRow(t.Context(), `SELECT count(*) FROM users`).Scan(&n); err != nil || n != 1 {
		t.Errorf("%d users, %v: a rejected user was stored", n, err)
	}
}

func TestSetPassword_AndSetRoles(t *testing.T) {
	h := newHarness(t)
	admin := h.admin()
	if _, err := h.service.SetPassword(t.Context(), "root@bank.example", newPassword); err != nil || !h.auth.hasPassword(admin.id, newPassword) {
		t.Errorf("got %v", err)
	}
	h.call(admin.token, "GET", "/v1/users/me", nil).want(t, 401, "common.unauthorized")
	if _, err := h.service.SetPassword(t.Context(), admin.id, "short"); !errors.Is(err, apierr.InvalidInput) {
		t.Errorf("got %v", err)
	}
	if _, err := h.service.SetRoles(t.Context(), admin.id, []string{"Advisor"}); !errors.Is(err, apierr.LastAdministrator) {
		t.Errorf("got %v", err)
	}
	u, err := h.service.SetRoles(t.Context(), "root@bank.example", []string{"Advisor", "Administrator"})
	if err != nil || len(u.Roles) != 2 {
		t.Errorf("got %+v, %v", u, err)
	}
	if _, err := h.service.SetRoles(t.Context(), "nobody", nil); !errors.Is(err, apierr.UserNotFound) {
		t.Errorf("got %v", err)
	}
}
