package app_test

import (
	"net/http"
	"time"

	"github.com/pquerna/otp/totp"

	"kontor/server/access"
	"kontor/server/servertest"
)

// factors enrols an authenticator app, signs in with it, authenticates again, and removes it.
func (s *scenario) factors() {
	user := s.server.User(access.Customer)
	own := "/v1/users/" + user.UserID
	code := func(secret string) string {
		s.server.Clock.Advance(30 * time.Second) // each code works once
		code, err := totp.GenerateCode(secret, s.server.Clock.Now())
		if err != nil {
			s.Fatal(err)
		}
		return code
	}
	var enrolled struct {
		ID   string
		TOTP struct{ Secret string }
	}
	s.do(user, "POST", own+"/factors", map[string]any{"type": "totp", "name": "Phone", "password": userPassword}).Into(s, &enrolled)
	factor, secret := own+"/factors/"+enrolled.ID, enrolled.TOTP.Secret
	var confirmed struct {
		RecoveryCodes []string `json:"recovery_codes"`
	}
	s.do(user, "POST", factor+"/confirm", map[string]any{"code": code(secret)}).Into(s, &confirmed)
	s.do(user, "PATCH", factor, map[string]any{"name": "Telephone"})
	s.do(user, "GET", own+"/factors", nil)

	signIn := func(answer map[string]any) *servertest.Client {
		first := s.server.Anonymous().Do("POST", "/authenticate", map[string]any{"user_id": user.UserID, "password": "a long enough password 42"})
		answer["token"] = first.Expect(s, http.StatusAccepted).JSON(s.T)["token"]
		signedIn := s.server.Anonymous()
		signedIn.UserID = user.UserID
		signedIn.Token = s.do(s.server.Anonymous(), "POST", "/authenticate/factor", answer).JSON(s.T)["access_token"].(string)
		return signedIn
	}
	s.expect(signIn(map[string]any{"recovery_code": confirmed.RecoveryCodes[0]}), "PUT", own+"/roles", map[string]any{"roles": []string{}}, 403, "common.rbac_no_rec_access")
	signedIn := signIn(map[string]any{"code": code(secret)})
	s.server.Clock.Advance(10 * time.Minute)
	proof := map[string]any{"password": userPassword}
	s.expect(signedIn, "DELETE", factor, proof, 401, "auth_m.insufficient_user_authentication")
	s.do(signedIn, "POST", own+"/reauthenticate/options", nil)
	s.do(signedIn, "POST", own+"/reauthenticate", proof)
	s.do(signedIn, "POST", own+"/reauthenticate", map[string]any{"code": code(secret)})
	s.do(signedIn, "DELETE", factor, proof)
	s.do(signedIn, "POST", own+"/factors", map[string]any{"type": "totp", "name": "Next phone", "password": userPassword})

	s.do(s.server.Anonymous(), "GET", "/authenticate/methods", nil)
	s.do(s.server.Anonymous(), "POST", "/authenticate/passkey", map[string]any{})
	link, err := s.server.Auth.NewLocalLink(s.Context(), servertest.AdminEmail)
	if err != nil {
		s.Fatal(err)
	}
	s.do(s.server.Anonymous(), "POST", "/authenticate/local", map[string]any{"code": link})
}
