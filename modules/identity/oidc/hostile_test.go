package oidc_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"kontor/modules/identity/oidc/oidctest"
)

const (
	failed      = "auth_m.oidc_failed"
	expired     = "auth_m.oidc_expired"
	unavailable = "auth_m.oidc_unavailable"
	cancelled   = "auth_m.oidc_cancelled"
	noAccount   = "auth_m.oidc_no_account"
)

// victim is a linked advisor, whom every hostile case tries to sign in as.
var victim = oidctest.Claims{"sub": "sub-victim", "email": "victim@bank.test", "groups": []string{"bank-advisors"}}

// hostile is a case that must not open a session.
type hostile struct {
	name   string
	want   string                           // the error with which the console is opened
	set    func(h *harness)                 // what is wrong at the provider
	walk   func(h *harness) (at url.Values) // what is wrong at the browser; nil: nothing
	unsent bool                             // the code must not reach a token endpoint
}

// hostileServer returns a server with the most generous settings and the victim.
func hostileServer(t *testing.T) *harness {
	t.Helper()
	h := start(t, createsUsers)
	h.link(h.User("Advisor").UserID, "sub-victim")
	return h
}

func runHostile(t *testing.T, h *harness, cases []hostile) {
	t.Helper()
	user := h.userOf("sub-victim")
	sessions := h.count(`SELECT count(*) FROM sessions WHERE user_id = $1`, user)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h.t = t
			h.provider.Reset()
			h.Clock.Advance(15 * time.Second) // keys may be requested again
			if c.set != nil {
				c.set(h)
			}
			before := h.provider.Hits("/token")
			walk := (*harness).walk
			if c.walk != nil {
				walk = c.walk
			}
			fragment := walk(h)
			h.expectError(fragment, c.want)
			if len(fragment) != 1 {
				t.Errorf("the console was opened with more than a code: %v", fragment)
			}
			if n := h.provider.Hits("/token") - before; c.unsent && n != 0 {
				t.Errorf("the code was sent to the token endpoint %d times", n)
			}
			if n := h.count(`SELECT count(*) FROM identities`); n != 1 {
				t.Errorf("%d identities", n)
			}
			if n := h.count(`SELECT count(*) FROM held_roles WHERE user_id = $1`, user); n != 1 {
				t.Errorf("the victim has %d roles", n)
			}
			if n := h.count(`SELECT count(*) FROM sessions WHERE user_id = $1`, user); n != sessions {
				t.Errorf("%d sessions of the victim, want %d", n, sessions)
			}
		})
	}
}

// walk signs the victim in, unless the browser does not even reach the provider.
func (h *harness) walk() url.Values {
	h.t.Helper()
	b := h.browser()
	location := b.do("GET", "/authenticate/oidc", nil).Expect(h.t, http.StatusSeeOther).Header.Get("Location")
	if strings.HasPrefix(location, baseURL) {
		return b.fragment(location)
	}
	return b.back(h.provider.SignIn(location, victim))
}
