package oidc_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"kontor/modules/identity/oidc/oidctest"
	"kontor/server/servertest"
)

// returned changes the parameters with which the browser returns.
func returned(change func(q url.Values)) func(h *harness) {
	return func(h *harness) { h.provider.Answer = change }
}

var browserCases = []hostile{
	{name: "answer of another issuer (mix-up)", want: failed, set: returned(func(q url.Values) { q.Set("iss", "https://evil.test") }), unsent: true},
	{name: "answer without an issuer (mix-up)", want: failed, set: returned(func(q url.Values) { q.Del("iss") }), unsent: true},
	{name: "no code", want: failed, set: returned(func(q url.Values) { q.Del("code") })},
	{name: "a long code", want: failed, set: returned(func(q url.Values) { q.Set("code", strings.Repeat("x", 5000)) }), unsent: true},
	{name: "no state", want: expired, set: returned(func(q url.Values) { q.Del("state") }), unsent: true},
	{name: "wrong state", want: expired, set: returned(func(q url.Values) { q.Set("state", "x") }), unsent: true},
	{name: "cancelled, with HTML in the description", want: cancelled, set: returned(func(q url.Values) {
		q.Del("code")
		q.Set("error", "access_denied")
		q.Set("error_description", "<script>alert(1)</script> call +41 44 000 00 00")
	})},
	{name: "an error with HTML as its code", want: failed, set: returned(func(q url.Values) { q.Set("error", "<b>x</b>") }), unsent: true},
	{name: "an error of the provider", want: unavailable, set: returned(func(q url.Values) { q.Set("error", "server_error") })},
	{name: "without a cookie", want: expired, unsent: true, walk: func(h *harness) url.Values {
		return h.browser().back(h.provider.SignIn(h.browser().begin(""), victim))
	}},
	{name: "with two cookies", want: expired, walk: func(h *harness) url.Values {
		b := h.browser()
		answer := h.provider.SignIn(b.begin(""), victim)
		b.cookie = b.cookie + "; " + b.cookie
		return b.back(answer)
	}},
	{name: "with a forged cookie", want: expired, walk: func(h *harness) url.Values {
		b := h.browser()
		answer := h.provider.SignIn(b.begin(""), victim)
		b.cookie = b.cookie[:len(b.cookie)-2] + "AA"
		return b.back(answer)
	}},
	{name: "with the state of another browser", want: expired, walk: func(h *harness) url.Values {
		b := h.browser()
		b.begin("")
		return b.back(h.provider.SignIn(h.browser().begin(""), victim))
	}},
	{name: "a code of another browser with the own state (PKCE)", want: failed, walk: func(h *harness) url.Values {
		b := h.browser()
		own := h.provider.SignIn(b.begin(""), oidctest.Claims{"sub": "x"})
		own.Set("code", h.provider.SignIn(h.browser().begin(""), victim).Get("code"))
		return b.back(own)
	}},
	{name: "a code twice", want: failed, walk: func(h *harness) url.Values {
		b := h.browser()
		used := h.provider.SignIn(b.begin(""), victim)
		b.back(used)
		again := h.provider.SignIn(b.begin(""), victim)
		again.Set("code", used.Get("code"))
		return b.back(again)
	}},
	{name: "the same answer twice", want: expired, walk: func(h *harness) url.Values {
		b := h.browser()
		answer := h.provider.SignIn(b.begin(""), victim)
		cookie := b.cookie
		b.back(answer)
		b.cookie = cookie
		return b.back(answer)
	}},
	{name: "a token with the nonce of an earlier sign-in", want: failed, walk: func(h *harness) url.Values {
		var former string
		h.provider.Token = func(w http.ResponseWriter, c oidctest.Claims) {
			if former == "" {
				former = c["id_token"].(string)
			}
			c["id_token"] = former
			oidctest.WriteJSON(w, 200, c)
		}
		h.browser().signIn(victim)
		return h.browser().signIn(victim)
	}},
	{name: "after ten minutes", want: expired, unsent: true, walk: func(h *harness) url.Values {
		b := h.browser()
		answer := h.provider.SignIn(b.begin(""), victim)
		h.Clock.Advance(10 * time.Minute)
		return b.back(answer)
	}},
	{name: "a user who is disabled", want: noAccount, walk: func(h *harness) url.Values {
		h.SignIn(servertest.AdminEmail, servertest.AdminPassword).
			Do("PATCH", "/v1/users/"+h.userOf("sub-victim"), map[string]string{"status": "disabled"}).Expect(h.t, http.StatusOK)
		return h.browser().signIn(victim)
	}},
}

func TestHostile_BrowsersAreRejected(t *testing.T) { runHostile(t, hostileServer(t), browserCases) }

func TestHostile_ReturnTo(t *testing.T) {
	h := start(t)
	for _, address := range []string{
		"https://evil.test", "//evil.test", "/\\evil.test", "\\\\evil.test", "/%5Cevil.test", "/%2F/evil.test", "javascript:alert(1)", "customers",
		"/\tevil", "/a\r\nSet-Cookie: x=1", "/..//evil.test", "/%2e%2e/evil", "/v1/logout", "/authenticate/oidc", "/<script>", "/a#b", "/" + strings.Repeat("a", 512), "/ä", "/%zz",
	} {
		h.Anonymous().Do("GET", "/authenticate/oidc?return_to="+url.QueryEscape(address), nil).ExpectError(t, http.StatusBadRequest, "common.invalid_input")
	}
	for _, address := range []string{"/", "/customers", "/customers/0193a000-0000-7000-8000-000000000001/kyc?x=1&y=%20"} {
		h.browser().begin(address)
	}
}
