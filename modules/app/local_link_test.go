package app_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"kontor/server/access"
	"kontor/server/servertest"
)

// TestLocalLink_StandsForThePasswordForAMinute uses links of "kontor open" too late, for a user with a second factor, and for a user who
// was disabled meanwhile. The tests of the command use them from elsewhere, twice and after a restart.
func TestLocalLink_StandsForThePasswordForAMinute(t *testing.T) {
	s := servertest.Start(t)
	link := func(userID string) map[string]any {
		t.Helper()
		code, err := s.Auth.NewLocalLink(t.Context(), userID)
		if err != nil {
			t.Fatal(err)
		}
		return map[string]any{"code": code}
	}
	use := func(body map[string]any) servertest.Response {
		return s.Anonymous().Do("POST", "/authenticate/local", body)
	}
	user := s.User(access.Customer)

	late := link(user.UserID)
	s.Clock.Advance(time.Minute)
	use(late).Expect(t, http.StatusUnauthorized)
	first := use(link(user.UserID)).Expect(t, http.StatusOK).JSON(t)
	if first["user_id"] != user.UserID || first["refresh_token"] == "" {
		t.Errorf("got the session %v", first)
	}

	own := "/v1/users/" + user.UserID + "/factors"
	enrolled := user.Do("POST", own, map[string]any{"type": "totp", "name": "Phone", "password": userPassword}).Expect(t, http.StatusCreated).JSON(t)
	code := func() string {
		s.Clock.Advance(30 * time.Second) // each code works once
		code, err := totp.GenerateCode(enrolled["totp"].(map[string]any)["secret"].(string), s.Clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	user.Do("POST", own+"/"+enrolled["id"].(string)+"/confirm", map[string]any{"code": code()}).Expect(t, http.StatusOK)
	step := use(link(user.UserID)).Expect(t, http.StatusAccepted).JSON(t)
	if step["access_token"] != nil || step["token"] == "" {
		t.Errorf("a user with a second factor got %v", step)
	}
	s.Anonymous().Do("POST", "/authenticate/factor", map[string]any{"token": step["token"], "code": code()}).Expect(t, http.StatusOK)
	entries := s.Admin().Do("GET", "/v1/audit?search.action=auth.session_opened_by_link&search.actor="+user.UserID, nil).Expect(t, http.StatusOK).JSON(t)
	if entries["total"] != 2.0 {
		t.Errorf("the audit trail has %v sessions by a link, want 2", entries["total"])
	}

	other := s.User(access.Customer)
	stale := link(other.UserID)
	s.Admin().Do("PATCH", "/v1/users/"+other.UserID, map[string]any{"status": "disabled"}).Expect(t, http.StatusOK)
	use(stale).Expect(t, http.StatusUnauthorized)
	if _, err := s.Auth.NewLocalLink(t.Context(), other.UserID); err == nil {
		t.Error("a disabled user got a link")
	}
	use(map[string]any{}).Expect(t, http.StatusBadRequest)
}
