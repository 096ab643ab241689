package app_test

import (
	"github.com/pquerna/otp/totp"

	"kontor/server/access"
)

// factors enrols an authenticator app for a user, renames it, and replaces and removes the recovery codes.
func (s *scenario) factors() {
	user := s.server.User(access.Customer)
	own := "/v1/users/" + user.UserID + "/factors"
	var app struct {
		ID   string
		TOTP struct{ Secret string }
	}
	s.do(user, "POST", own, map[string]any{"type": "totp"}).Into(s, &app)
	s.expect(user, "POST", own+"/"+app.ID+"/confirm", map[string]any{"code": "none"}, 400, "common.invalid_input")
	code, err := totp.GenerateCode(app.TOTP.Secret, s.server.Clock.Now())
	if err != nil {
		s.Fatal(err)
	}
	s.do(user, "POST", own+"/"+app.ID+"/confirm", map[string]any{"code": code})
	s.do(user, "PATCH", own+"/"+app.ID, map[string]any{"name": "Phone <&>"})
	codes := s.id(user, own, map[string]any{"type": "recovery_codes"})
	s.do(user, "GET", own+"?search.status=active", nil)
	s.do(user, "DELETE", own+"/"+codes, nil)
	s.expect(user, "POST", own, map[string]any{"type": "totp"}, 409, "factors.too_many")
	s.expect(user, "POST", own, map[string]any{"type": "passkey"}, 409, "factors.passkeys_unavailable")
}
