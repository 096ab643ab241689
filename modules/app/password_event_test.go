package app_test

import (
	"net/http"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

func TestPassword_ChangeNotifiesTheUser(t *testing.T) {
	s := servertest.Start(t)
	u := s.User(access.Customer)
	s.Admin().Do("PUT", "/v1/users/"+u.UserID+"/password", map[string]any{"password": "an entirely new secret 77"}).Expect(t, http.StatusOK)
	answer := s.Admin().Do("GET", "/v1/notifications?search.user_id="+u.UserID, nil).Expect(t, http.StatusOK)
	if !strings.Contains(answer.Body, `"event":"password_changed"`) {
		t.Errorf("got %s, want an event password_changed", answer.Body)
	}
}
