package auth_test

import (
	"strings"
	"testing"
	"time"

	"kontor/modules/kit/factor"
	"kontor/store"
)

// get requests a path with an access token.
func (h *harness) get(path, token string) answer {
	h.Helper()
	return h.call("GET", path, nil, "Authorization", "Bearer "+token)
}

// again authenticates a user within a session.
func (h *harness) again(userID, token string, body map[string]any, headers ...string) answer {
	h.Helper()
	return h.call("POST", "/v1/users/"+userID+"/reauthenticate", body, append(headers, "Authorization", "Bearer "+token)...)
}

const stale = "auth_m.insufficient_user_authentication"

func TestAssurance_OfUsersWithoutFactors(t *testing.T) {
	h := newHarness(t)
	anna, beat := h.user("anna@example.ch"), h.user("beat@example.ch")
	first := h.mustSignIn("anna@example.ch")
	token := first.text("access_token")
	check := func(when string, status int, code string) {
		t.Helper()
		h.expect(when+": any", h.get("/any", token), 200, "")
		for _, path := range []string{"/fresh", "/factor", "/condition?strict=true"} {
			h.expect(when+": "+path, h.get(path, token), status, code)
		}
		h.expect(when+": without the condition", h.get("/condition", token), 200, "")
	}
	check("right after signing in", 200, "")
	h.clock.Advance(10*time.Minute - time.Millisecond)
	check("in the last moment", 200, "")
	h.clock.Advance(time.Millisecond)
	check("after ten minutes", 401, stale)
	refused := h.get("/factor", token)
	want := `Bearer realm="kontor", error="insufficient_user_authentication", max_age="600"`
	if got := refused.header.Get("WWW-Authenticate"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if strings.Contains(refused.body, "acr_values") {
		t.Errorf("a user without a second factor is asked for one: %s", refused.body)
	}
	refreshed := h.call("POST", "/v1/token/refresh", map[string]string{"refresh_token": first.text("refresh_token")})
	token = refreshed.text("access_token")
	check("after a refresh", 401, stale)
	if refreshed.text("device_token") != "" {
		t.Error("a refresh returned a device token")
	}

	h.expect("a wrong password", h.again(anna, token, object("password", "wrong")), 400, "common.invalid_input")
	h.expect("no password", h.again(anna, token, object("password", "")), 400, "common.invalid_input")
	h.expect("a code", h.again(anna, token, object("code", "123456")), 400, "common.invalid_input")
	h.expect("another user", h.again(beat, token, object("password", password)), 403, "common.rbac_no_rec_access")
	h.expect("an unknown user", h.again(store.NewID(), token, object("password", password)), 404, "users.user_not_found")
	check("after rejections", 401, stale)
	h.expect("the password", h.again(anna, token, object("password", password)), 200, "")
	check("after the password", 200, "")
	h.clock.Advance(-time.Hour)
	h.expect("after the clock was set back", h.get("/fresh", token), 401, stale)
	h.clock.Advance(time.Hour)
	check("when the clock is right again", 200, "")
	h.restart()
	check("after a restart", 200, "")
}

func TestAssurance_OfUsersWithAFactor(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	before := h.mustSignIn("anna@example.ch").text("access_token")
	h.expect("without a factor", h.get("/factor", before), 200, "")
	h.factors.enrol(anna, factor.TOTP, factor.RecoveryCode)
	h.inTx(func(tx *store.Tx) error { h.auth.Changed(tx, anna); return nil })

	h.expect("a session by password", h.get("/fresh", before), 200, "")
	refused := h.get("/factor", before)
	h.expect("a session by password", refused, 401, stale)
	want := `Bearer realm="kontor", error="insufficient_user_authentication", max_age="600", acr_values="aal2"`
	if got := refused.header.Get("WWW-Authenticate"); got != want || !strings.Contains(refused.body, `"acr_values":["aal2"]`) {
		t.Errorf("got %s and %s, want %s", got, refused.body, want)
	}
	h.expect("the password again", h.again(anna, before, object("password", password)), 200, "")
	h.expect("the password twice is one factor", h.get("/factor", before), 401, stale)
	raised := h.again(anna, before, object("code", h.factors.code(anna, "111111")))
	h.expect("a code", raised, 200, "")
	if raised.text("acr") != "aal2" {
		t.Errorf("acr %s after a code", raised.text("acr"))
	}
	h.expect("after a code", h.get("/factor", before), 200, "")
	h.expect("the same code", h.again(anna, before, object("code", "111111")), 400, "common.invalid_input")
	h.clock.Advance(6 * time.Minute)
	h.expect("the password", h.again(anna, before, object("password", password)), 200, "")
	h.clock.Advance(5 * time.Minute)
	h.expect("eleven minutes after the code", h.get("/fresh", before), 200, "")
	h.expect("eleven minutes after the code", h.get("/factor", before), 401, stale)
	h.expect("a recovery code", h.again(anna, before, object("recovery_code", h.factors.code(anna, "abcd-efgh"))), 200, "")
	h.expect("after a recovery code", h.get("/factor", before), 200, "")
}

func TestReauthenticate_RejectsOtherInput(t *testing.T) {
	h, anna := newEnrolled(t, factor.TOTP, factor.Passkey)
	token := h.completeSignIn("anna@example.ch", object("code", h.factors.code(anna, "000000"))).text("access_token")
	long := strings.Repeat("1", 65)
	for what, body := range map[string]map[string]any{
		"nothing":                   {},
		"only a token":              object("token", "x"),
		"null":                      {"passkey": nil},
		"a password and a code":     {"password": password, "code": "111111"},
		"two codes":                 {"recovery_code": "x", "code": "111111"},
		"a code and a passkey":      {"code": "111111", "passkey": object("secret", "x"), "token": "x"},
		"a passkey without a token": {"passkey": object("secret", "x")},
		"a forged token":            {"passkey": object("secret", "x"), "token": strings.Repeat("A", 43)},
		"a text as a passkey":       {"passkey": "x", "token": "x"},
		"a huge passkey":            {"passkey": object("x", strings.Repeat("x", 17<<10)), "token": "x"},
		"a long code":               object("code", long),
		"a long recovery code":      object("recovery_code", long),
		"a number as a code":        {"code": 111111},
	} {
		evaluated := h.factors.evaluated
		h.expect(what, h.again(anna, token, body), 400, "common.invalid_input")
		if h.factors.evaluated != evaluated {
			t.Errorf("%s was evaluated", what)
		}
	}
}

// object returns an object with one member.
func object(name string, value any) map[string]any { return map[string]any{name: value} }
