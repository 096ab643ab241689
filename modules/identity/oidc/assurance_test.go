package oidc_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/identity/oidc/oidctest"
	"kontor/modules/kit/factor"
	"kontor/modules/kit/signin"
	"kontor/store"
)

// everyoneHas are second factors of a kind for every user.
type everyoneHas string

func (e everyoneHas) Methods(context.Context, store.Querier, string) ([]string, error) {
	return []string{string(e)}, nil
}

// Trusted returns the same.
func (e everyoneHas) Trusted(context.Context, store.Querier, string) ([]string, error) {
	return []string{string(e)}, nil
}
func (everyoneHas) InUse(context.Context, store.Querier, []string) (bool, error) { return false, nil }
func (everyoneHas) Passkeys() bool                                               { return false }
func (everyoneHas) PasskeyOptions(context.Context, string) (jsontext.Value, []byte, error) {
	return nil, nil, errors.New("there are no passkeys")
}
func (everyoneHas) Verify(context.Context, string, []byte, factor.Answer) (factor.Accepted, error) {
	return factor.Accepted{}, errors.New("no answer is expected")
}

// The provider vouches for what it has verified, and for no more.
func TestSignIn_AsksForTheSecondFactor(t *testing.T) {
	h := start(t)
	advisor := h.User("Advisor")
	h.link(advisor.UserID, "sub-1")
	h.Auth.Peers.Factors = everyoneHas(factor.TOTP)
	exchange := func(amr ...string) (status int, body string) {
		t.Helper()
		b := h.browser()
		fragment := b.signIn(oidctest.Claims{"sub": "sub-1", "groups": "bank-advisors", "amr": amr})
		answer := b.do("POST", "/authenticate/oidc", map[string]string{"code": fragment.Get("oidc_code")})
		return answer.Status, answer.Body
	}
	sessions := h.count(`SELECT count(*) FROM sessions WHERE user_id = $1`, advisor.UserID)
	for _, one := range [][]string{nil, {"pwd"}, {"otp"}, {"hwk"}, {"swk"}, {"fpt"}, {"fed"}, {"MFA"}, {"kba", "pwd"},
		{"otp", "hwk"}, {"face", "fpt"}, {"otp", "geo", "user"}, {"otp", "password"}} {
		if status, body := exchange(one...); status != http.StatusAccepted || strings.Contains(body, "access_token") || !strings.Contains(body, factor.TOTP) {
			t.Errorf("%v: got %d %s", one, status, body)
		}
	}
	if n := h.count(`SELECT count(*) FROM sessions WHERE user_id = $1`, advisor.UserID); n != sessions {
		t.Errorf("%d sessions without the second factor", n-sessions)
	}
	for _, two := range [][]string{{"pwd", "mfa", "otp"}, {"mfa"}, {"pwd", "otp"}, {"hwk", "pin"}} {
		if status, body := exchange(two...); status != http.StatusOK {
			t.Errorf("%v: got %d %s", two, status, body)
		}
	}
}

// The session is as fresh as the authentication at the provider.
func TestSignIn_TakesOverTheAuthentication(t *testing.T) {
	for name, c := range map[string]struct {
		at    any
		fresh bool
	}{"now": {0, true}, "long ago": {-time.Hour, false}, "unknown": {nil, false}} {
		t.Run(name, func(t *testing.T) {
			h := start(t)
			advisor := h.User("Advisor")
			id := h.link(advisor.UserID, "sub-1")
			h.Clock.Advance(signin.Trial)
			person := oidctest.Claims{"sub": "sub-1", "groups": "bank-advisors"}
			if ago, given := c.at.(time.Duration); given {
				person["auth_time"] = h.Clock.Now().Add(ago).Unix()
			}
			if c.at == nil {
				h.provider.Claims = func(c oidctest.Claims) { delete(c, "auth_time") }
			}
			b := h.browser()
			client := b.tokens(b.signIn(person))
			listed := client.Do("GET", "/v1/users/"+advisor.UserID+"/sessions", nil).Expect(t, http.StatusOK)
			if !strings.Contains(listed.Body, `"amr":["pwd","fed"]`) {
				t.Errorf("sessions: %s", listed.Body)
			}
			unlinked := client.Do("DELETE", "/v1/users/"+advisor.UserID+"/identities/"+id, map[string]any{"password": userPassword})
			if c.fresh && unlinked.Status != http.StatusOK || !c.fresh && unlinked.Status != http.StatusUnauthorized {
				t.Errorf("unlink: %d %s", unlinked.Status, unlinked.Body)
			}
		})
	}
}
