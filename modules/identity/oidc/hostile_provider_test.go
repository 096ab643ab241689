package oidc_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"kontor/modules/identity/oidc/oidctest"
)

// claims returns a change of the provider: a claim of the ID token; nil removes it.
func claims(name string, value any) func(h *harness) {
	return func(h *harness) {
		h.provider.Claims = func(c oidctest.Claims) {
			if c[name] = value; value == nil {
				delete(c, name)
			}
		}
	}
}

// in returns the time that is a number of seconds away from now, as a claim of the ID token.
func in(name string, seconds int64) func(h *harness) {
	return func(h *harness) {
		h.provider.Claims = func(c oidctest.Claims) { c[name] = h.Clock.Now().Unix() + seconds }
	}
}

// signed replaces the signature.
func signed(sign func(h *harness, c oidctest.Claims) string) func(h *harness) {
	return func(h *harness) {
		h.provider.Sign = func(c oidctest.Claims) string { return sign(h, c) }
	}
}

// path replaces an endpoint of the provider.
func path(name string, handle func(h *harness) http.HandlerFunc) func(h *harness) {
	return func(h *harness) { h.provider.Paths = map[string]http.HandlerFunc{name: handle(h)} }
}

// rotated also replaces the key, so that the keys are requested.
func rotated(set func(h *harness)) func(h *harness) {
	return func(h *harness) {
		h.provider.RotateKey()
		set(h)
	}
}

// configured changes the configuration.
func configured(change func(h *harness, c oidctest.Claims)) func(h *harness) {
	return func(h *harness) { h.provider.Configuration = func(c oidctest.Claims) { change(h, c) } }
}

func redirect(to string) func(h *harness) http.HandlerFunc {
	return func(h *harness) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, strings.ReplaceAll(to, "SELF", h.provider.URL), http.StatusFound)
		}
	}
}

func huge(start string) func(h *harness) http.HandlerFunc {
	return func(*harness) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(start))
			for range 64 {
				if _, err := w.Write([]byte(strings.Repeat(" ", 8<<10))); err != nil {
					return
				}
			}
			_, _ = w.Write([]byte("}"))
		}
	}
}

// blocked waits until the client gives up.
func blocked(*harness) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // before that the server does not see that the client is gone
		<-r.Context().Done()
	}
}

func text(status int, kind, body string) func(h *harness) http.HandlerFunc {
	return func(*harness) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
}

var configurationCases = []hostile{
	{name: "configuration of another issuer", want: unavailable, set: configured(func(_ *harness, c oidctest.Claims) { c["issuer"] = "https://evil.test" })},
	{name: "configuration that redirects", want: unavailable, set: path("/.well-known/openid-configuration", redirect("https://evil.test/"))},
	{name: "configuration that redirects to itself", want: unavailable, set: path("/.well-known/openid-configuration", redirect("SELF/elsewhere"))},
	{name: "huge configuration", want: unavailable, set: path("/.well-known/openid-configuration", huge(`{"issuer":"x"`))},
	{name: "token endpoint without TLS", want: unavailable, set: configured(func(_ *harness, c oidctest.Claims) { c["token_endpoint"] = "http://evil.test/token" })},
	{name: "authorization endpoint of another scheme", want: unavailable, set: configured(func(_ *harness, c oidctest.Claims) { c["authorization_endpoint"] = "javascript:alert(1)" })},
	{name: "keys in a file", want: unavailable, set: configured(func(_ *harness, c oidctest.Claims) { c["jwks_uri"] = "file:///etc/passwd" })},
	{name: "only symmetric algorithms", want: unavailable, set: configured(func(_ *harness, c oidctest.Claims) {
		c["id_token_signing_alg_values_supported"] = []string{"HS256", "none"}
	})},
	{name: "user info of another subject", want: failed, set: func(h *harness) {
		h.provider.Configuration = func(c oidctest.Claims) { c["userinfo_endpoint"] = h.provider.URL + "/userinfo" }
		h.provider.Claims = func(c oidctest.Claims) { delete(c, "groups") }
		h.provider.UserInfo = func(c oidctest.Claims) { c["sub"], c["groups"] = "another", "bank-admins" }
	}},
	{name: "downgrade of PKCE", want: unavailable, set: configured(func(_ *harness, c oidctest.Claims) { c["code_challenge_methods_supported"] = []string{"plain"} })},
}

// A configuration that was read once stays in memory, so each case has a server of its own.
func TestHostile_ConfigurationsAreRejected(t *testing.T) {
	for _, c := range configurationCases {
		runHostile(t, hostileServer(t), []hostile{c})
	}
}

// No other test has a short time for the provider: a busy machine would exceed it. A configuration or key set that does not come in time
// is requested again by later sign-ins, so each case has a server of its own.
func TestHostile_SlowProvidersAreGivenUp(t *testing.T) {
	for _, c := range []hostile{
		{name: "configuration", want: unavailable, set: path("/.well-known/openid-configuration", blocked)},
		{name: "token endpoint", want: unavailable, set: path("/token", blocked)},
		{name: "key set", want: unavailable, set: rotated(path("/jwks", blocked))},
	} {
		h := hostileServer(t)
		h.OIDC.GiveUpAfter(500 * time.Millisecond)
		runHostile(t, h, []hostile{c})
	}
}
