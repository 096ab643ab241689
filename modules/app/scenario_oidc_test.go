package app_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"kontor/modules/identity/oidc/oidctest"
	"kontor/server/servertest"
	"kontor/server/settings"
)

// withProvider adds a sign-in provider to a server. The provider must be started before, and gets the clock of the server when
// both run.
func withProvider(t *testing.T, clock *func() time.Time) (*oidctest.Provider, servertest.Option) {
	p := oidctest.New(t, func() time.Time { return (*clock)() })
	return p, func(s *settings.Settings) {
		s.Auth.OIDC = settings.OIDC{Issuer: p.URL, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret, Scopes: []string{"openid"}}
	}
}

// oidc signs an advisor in with the provider, and unlinks one of two accounts. The other stays, for tests of the records.
func (s *scenario) oidc() {
	s.Helper()
	user := s.server.User("Advisor")
	path := "/v1/users/" + user.UserID + "/identities"
	s.id(s.admin, path, map[string]string{"subject": "248289761001"})
	other := s.id(s.admin, path, map[string]string{"subject": "248289761002"})
	s.do(s.admin, "GET", path, nil)
	s.do(s.admin, "DELETE", path+"/"+other, nil)

	browser := s.server.Anonymous()
	begun := s.do(browser, "GET", "/authenticate/oidc?return_to=/customers", nil)
	answer := s.provider.SignIn(begun.Header.Get("Location"), oidctest.Claims{"sub": "248289761001"})
	returned := s.do(browser.With("Cookie", cookieOf(begun)), "GET", "/authenticate/oidc/callback?"+answer.Encode(), nil)
	_, fragment, _ := strings.Cut(returned.Header.Get("Location"), "#")
	members, err := url.ParseQuery(fragment)
	if err != nil {
		s.Fatal(err)
	}
	s.do(browser.With("Cookie", cookieOf(returned)), "POST", "/authenticate/oidc", map[string]string{"code": members.Get("oidc_code")})
}

func cookieOf(r servertest.Response) string {
	cookie, _, _ := strings.Cut(r.Header.Get("Set-Cookie"), ";")
	return cookie
}
