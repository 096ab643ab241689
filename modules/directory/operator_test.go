package directory_test

import (
	"errors"
	"testing"

	"kontor/modules/directory"
	"kontor/server/apierr"
)

func TestCreate_CreatesAnActiveUser(t *testing.T) {
	b := newBank(t)
	u, err := b.service.Create(t.Context(), directory.NewUser{Value: "Boss@bank.example", Password: password, Roles: []string{"administrator", "Advisor"}, Language: "de"})
	if err != nil || u.Status != "active" || u.Language != "de" || len(u.Roles) != 2 || !b.auth.knows(u.ID, password) {
		t.Fatalf("got %+v, %v", u, err)
	}
	if len(b.outbox.sent) != 0 || b.audited("users.create", u.ID) != 1 {
		t.Error("a code was sent, or the audit trail does not tell")
	}
	found, err := b.service.Find(t.Context(), b.db, "BOSS@bank.example")
	if err != nil || found.ID != u.ID {
		t.Errorf("found %+v, %v", found, err)
	}
}

func TestCreate_RejectsInvalidInput(t *testing.T) {
	b := newBank(t)
	b.admin()
	for want, n := range map[apierr.Kind]directory.NewUser{
		apierr.CredentialExists: {Value: "root@bank.example", Password: password, Roles: []string{"Advisor"}},
		apierr.InvalidInput:     {Value: "other", Password: password, Roles: []string{"Emperor"}},
	} {
		if _, err := b.service.Create(t.Context(), n); !errors.Is(err, want) {
			t.Errorf("got %v, want %s", err, want.Code)
		}
	}
	if _, err := b.service.Create(t.Context(), directory.NewUser{Value: "x", Password: "short", Language: "rm"}); err == nil {
		t.Error("a user with wrong language, name and password was made")
	}
	var n int
	if err := b.db.QueryRow(t.Context(), `SELECT count(*) FROM users`).Scan(&n); err != nil || n != 1 {
		t.Errorf("%d users, %v: a refused one left its marks", n, err)
	}
}

func TestSetPassword_AndSetRoles(t *testing.T) {
	b := newBank(t)
	admin := b.admin()
	if _, err := b.service.SetPassword(t.Context(), "root@bank.example", newPassword); err != nil || !b.auth.knows(admin.id, newPassword) {
		t.Errorf("got %v", err)
	}
	b.call(admin.token, "GET", "/v1/users/me", nil).want(t, 401, "common.unauthorized")
	if _, err := b.service.SetPassword(t.Context(), admin.id, "short"); !errors.Is(err, apierr.InvalidInput) {
		t.Errorf("got %v", err)
	}
	if _, err := b.service.SetRoles(t.Context(), admin.id, []string{"Advisor"}); !errors.Is(err, apierr.LastAdministrator) {
		t.Errorf("got %v", err)
	}
	u, err := b.service.SetRoles(t.Context(), "root@bank.example", []string{"Advisor", "Administrator"})
	if err != nil || len(u.Roles) != 2 {
		t.Errorf("got %+v, %v", u, err)
	}
	if _, err := b.service.SetRoles(t.Context(), "nobody", nil); !errors.Is(err, apierr.UserNotFound) {
		t.Errorf("got %v", err)
	}
}
