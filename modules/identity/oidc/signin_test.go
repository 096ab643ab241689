package oidc_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"kontor/modules/identity/oidc/oidctest"
	"kontor/server/servertest"
	"kontor/server/settings"
)

func TestSignIn_OfALinkedUser(t *testing.T) {
	h := start(t)
	advisor := h.User("Advisor")
	h.link(advisor.UserID, "sub-1")
	b := h.browser()
	address, err := url.Parse(b.begin("/customers?tab=kyc"))
	if err != nil {
		t.Fatal(err)
	}
	sent := address.Query()
	for name, want := range map[string]string{
		"response_type": "code", "client_id": oidctest.ClientID, "redirect_uri": baseURL + "/authenticate/oidc/callback",
		"scope": "openid email", "code_challenge_method": "S256", "max_age": "600",
	} {
		if sent.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, sent.Get(name), want)
		}
	}
	if !strings.Contains(b.set, "HttpOnly") || !strings.Contains(b.set, "SameSite=Lax") || !strings.Contains(b.set, "Max-Age=600") || strings.Contains(b.set, "Secure") {
		t.Errorf("the cookie is %s", b.set)
	}
	fragment := b.back(h.provider.SignIn(address.String(), oidctest.Claims{"sub": "sub-1", "groups": []string{"bank-advisors"}}))
	if fragment.Get("return_to") != "/customers?tab=kyc" {
		t.Errorf("the console was opened with %v", fragment)
	}
	c := b.tokens(fragment)
	if c.UserID != advisor.UserID || b.cookie != "" {
		t.Errorf("user %s, want %s; cookie %q", c.UserID, advisor.UserID, b.cookie)
	}
	c.Do("GET", "/v1/users/me", nil).Expect(t, http.StatusOK)
	rows := c.Do("GET", "/v1/users/"+c.UserID+"/identities", nil).Expect(t, http.StatusOK)
	if !strings.Contains(rows.Body, `"subject":"sub-1"`) || strings.Contains(rows.Body, `"last_used_at":null`) {
		t.Errorf("identities: %s", rows.Body)
	}
}

func TestSignIn_IsOffByDefault(t *testing.T) {
	s := servertest.Start(t)
	for _, path := range []string{"/authenticate/oidc", "/authenticate/oidc/callback"} {
		s.Anonymous().Do("GET", path, nil).ExpectError(t, http.StatusNotFound, "common.not_found")
	}
	s.Anonymous().Do("POST", "/authenticate/oidc", map[string]string{"code": "x"}).ExpectError(t, http.StatusNotFound, "common.not_found")
	s.Admin().Do("POST", "/v1/users/"+s.Admin().UserID+"/identities", map[string]string{"subject": "x"}).ExpectError(t, http.StatusNotFound, "common.not_found")
	if s.OIDC.Name() != "" {
		t.Errorf("the provider is called %q", s.OIDC.Name())
	}
}

func TestSignIn_OverTLSHasAHostCookie(t *testing.T) {
	h := start(t, func(s *settings.Settings) { s.Server.BaseURL = "https://bank.test" })
	b := h.browser()
	b.begin("")
	if !strings.HasPrefix(b.set, "__Host-kontor-oidc=") || !strings.Contains(b.set, "; Secure") || !strings.Contains(b.set, "Path=/;") || strings.Contains(b.set, "Domain") {
		t.Errorf("the cookie is %s", b.set)
	}
}

// The provider may replace its keys at any time. A token with an unknown key causes one request, and not one for each token.
func TestKeys_RotateAtTheProvider(t *testing.T) {
	h := start(t)
	advisor := h.User("Advisor")
	h.link(advisor.UserID, "sub-1")
	person := oidctest.Claims{"sub": "sub-1", "groups": "bank-advisors"}
	b := h.browser()
	b.tokens(b.signIn(person))
	for range 3 {
		b.tokens(b.signIn(person))
	}
	if n := h.provider.Hits("/jwks"); n != 1 {
		t.Errorf("the keys were requested %d times for one key", n)
	}
	h.provider.RotateKey()
	h.expectError(b.signIn(person), "auth_m.oidc_unavailable") // too soon after the first request
	h.Clock.Advance(11 * time.Second)
	b.tokens(b.signIn(person))
	key, _ := h.provider.Key()
	h.provider.Sign = func(c oidctest.Claims) string { return oidctest.Sign(jose.ES256, key, "unknown", c) }
	for range 5 {
		h.Clock.Advance(3 * time.Second)
		b.signIn(person)
	}
	if n := h.provider.Hits("/jwks"); n > 4 {
		t.Errorf("unknown keys caused %d requests", n)
	}
}

func TestProvider_IsNotNeededAtTheStart(t *testing.T) {
	h := start(t)
	advisor := h.User("Advisor")
	h.link(advisor.UserID, "sub-1")
	down := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	h.provider.Paths = map[string]http.HandlerFunc{"/.well-known/openid-configuration": down}
	ready := func(want string) {
		t.Helper()
		answer := h.Anonymous().Do("GET", "/readyz", nil).Expect(t, http.StatusOK)
		checks, _ := answer.JSON(t)["checks"].(map[string]any)
		if checks["sign_in_provider"] != want {
			t.Errorf("readiness: %s", answer.Body)
		}
	}
	ready("warning")
	b := h.browser()
	for range 5 { // the pause after a failure
		location := b.do("GET", "/authenticate/oidc", nil).Expect(t, http.StatusSeeOther).Header.Get("Location")
		h.expectError(b.fragment(location), "auth_m.oidc_unavailable")
	}
	if n := h.provider.Hits("/.well-known/openid-configuration"); n != 1 {
		t.Errorf("the provider was asked %d times", n)
	}
	h.provider.Paths = nil
	h.Clock.Advance(3 * time.Second)
	b.begin("")
	ready("ok")
	// A provider that fails later is used with its former configuration.
	h.provider.Paths = map[string]http.HandlerFunc{"/.well-known/openid-configuration": down}
	h.Clock.Advance(2 * time.Hour)
	b.tokens(b.signIn(oidctest.Claims{"sub": "sub-1", "groups": "bank-advisors"}))
	ready("warning")
}
