package auth_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kontor/modules/kit/factor"
	"kontor/server/apierr"
	"kontor/store"
)

// firstStep signs in with the password and returns the next step.
func (h *harness) firstStep(value string, headers ...string) answer {
	h.Helper()
	step := h.signIn(value, password, headers...)
	if step.status != http.StatusAccepted || step.text("access_token") != "" || step.text("token") == "" {
		h.Fatalf("first step of %s: %d %s", value, step.status, step.body)
	}
	return step
}

// secondStep sends an answer for a token.
func (h *harness) secondStep(token string, body map[string]any, headers ...string) answer {
	h.Helper()
	body = maps.Clone(body)
	body["token"] = token
	return h.call("POST", "/authenticate/factor", body, headers...)
}

// completeSignIn signs in with the password and an answer.
func (h *harness) completeSignIn(value string, body map[string]any, headers ...string) answer {
	h.Helper()
	a := h.secondStep(h.firstStep(value, headers...).text("token"), body, headers...)
	if a.status != http.StatusOK {
		h.Fatalf("second step of %s: %d %s", value, a.status, a.body)
	}
	return a
}

const (
	wrongFactor = "auth_m.invalid_factor"
	expired     = "auth_m.challenge_expired"
	lockedOut   = "auth_m.cooling_off"
)

// passkeyAnswer returns the answer of a passkey to the options of a request.
func passkeyAnswer(a answer, secret string) map[string]any {
	options, _ := a.json["options"].(map[string]any)
	if nested, ok := a.json["passkey"].(map[string]any); ok {
		options = nested["options"].(map[string]any)
	}
	return object("passkey", map[string]any{"challenge": options["challenge"], "secret": secret})
}

func TestSignIn_OfUsersWithoutFactorsIsUnchanged(t *testing.T) {
	h := newHarness(t)
	h.user("anna@example.ch")
	a := h.mustSignIn("anna@example.ch")
	want := []string{"access_token", "device_token", "expires_in", "refresh_token", "token_type", "user_id"}
	if got := slices.Sorted(maps.Keys(a.json)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSecondStep(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	h.factors.enrol(anna, factor.TOTP, factor.Passkey, factor.RecoveryCode)
	h.factors.keys["anna's key"] = anna
	step := h.firstStep("anna@example.ch")
	if step.json["expires_in"] != 300.0 || len(step.json["methods"].([]any)) != 3 {
		t.Errorf("got %s", step.body)
	}
	if len(h.events.devices) != 0 {
		t.Error("the first step was reported as a sign-in")
	}
	for what, body := range map[string]map[string]any{
		"code": object("code", h.factors.code(anna, "111111")), "recovery code": object("recovery_code", h.factors.code(anna, "abcd")),
		"passkey": nil,
	} {
		step := h.firstStep("anna@example.ch")
		if body == nil {
			body = passkeyAnswer(step, "anna's key")
		}
		a := h.secondStep(step.text("token"), body)
		h.expect(what, a, 200, "")
		if a.text("device_token") == "" || a.text("refresh_token") == "" {
			t.Errorf("%s: got %s", what, a.body)
		}
		token := a.text("access_token")
		h.expect(what+" is a second factor", h.get("/factor", token), 200, "")
		h.expect(what+" again", h.secondStep(step.text("token"), body), 401, expired)
		session := h.currentSession(anna, token)
		if session["acr"] != "aal2" {
			t.Errorf("%s: session %v", what, session)
		}
	}
}

// currentSession returns the session of an access token.
func (h *harness) currentSession(userID, token string) map[string]any {
	h.Helper()
	for _, row := range h.getSessions(userID, token).json["data"].([]any) {
		if session := row.(map[string]any); session["current"] == true {
			return session
		}
	}
	h.Fatal("no current session")
	return nil
}

func TestSecondStep_PasskeyWithoutAPassword(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	h.factors.enrol(anna, factor.Passkey, factor.TOTP)
	h.factors.keys["anna's key"] = anna
	begun := h.call("POST", "/authenticate/passkey", map[string]any{})
	h.expect("begin", begun, 200, "")
	h.expect("a code names no user", h.secondStep(begun.text("token"), object("code", h.factors.code(anna, "111111"))), 401, wrongFactor)
	h.expect("a strange passkey", h.secondStep(begun.text("token"), passkeyAnswer(begun, "strange")), 401, wrongFactor)
	a := h.secondStep(begun.text("token"), passkeyAnswer(begun, "anna's key"))
	h.expect("a passkey", a, 200, "")
	session := h.currentSession(anna, a.text("access_token"))
	if session["acr"] != "aal2" || fmt.Sprint(session["amr"]) != "[hwk user mfa]" {
		t.Errorf("got %v", session)
	}
	h.expect("it is a second factor, too", h.get("/factor", a.text("access_token")), 200, "")
	h.expect("a code raises nothing", h.again(anna, a.text("access_token"), object("code", "111111")), 200, "")
	if got := h.currentSession(anna, a.text("access_token"))["acr"]; got != "aal2" {
		t.Errorf("acr %v", got)
	}

	disabled := h.userWithStatus("disabled", "beat@example.ch")
	h.factors.enrol(disabled, factor.Passkey)
	h.factors.keys["beat's key"] = disabled
	begun = h.call("POST", "/authenticate/passkey", nil)
	h.expect("a disabled user", h.secondStep(begun.text("token"), passkeyAnswer(begun, "beat's key")), 401, "auth_m.invalid_credentials")
}

func TestSecondStep_HostileTokens(t *testing.T) {
	h := newHarness(t)
	anna, beat := h.user("anna@example.ch"), h.user("beat@example.ch")
	h.factors.enrol(anna, factor.TOTP, factor.Passkey)
	h.factors.enrol(beat, factor.TOTP)
	h.factors.keys["anna's key"] = anna
	device := []string{"X-Device-ID", "telephone"}
	good := func() map[string]any { return object("code", h.factors.code(anna, "111111")) }
	session := h.completeSignIn("anna@example.ch", good(), device...).text("access_token")
	options := h.call("POST", "/v1/users/"+anna+"/reauthenticate/options", nil, append(device, "Authorization", "Bearer "+session)...)
	h.expect("options", options, 200, "")
	used := h.firstStep("anna@example.ch", device...).text("token")
	h.expect("use", h.secondStep(used, good(), device...), 200, "")
	for _, attack := range []struct {
		name    string
		token   func() string
		body    map[string]any
		headers []string
		status  int
		code    string
	}{
		{"another device", nil, good(), []string{"X-Device-ID", "laptop"}, 401, expired},
		{"no device", nil, good(), nil, 401, expired},
		{"used before", func() string { return used }, good(), device, 401, expired},
		{"a token of a step-up", func() string { return options.text("token") }, good(), device, 401, expired},
		{"a refresh token", func() string { return session[:43] }, good(), device, 401, expired},
		{"forged", func() string { return strings.Repeat("A", 43) }, good(), device, 401, expired},
		{"a character too many", func() string { return h.firstStep("anna@example.ch", device...).text("token") + "A" }, good(), device, 401, expired},
		{"padded", func() string { return h.firstStep("anna@example.ch", device...).text("token") + "=" }, good(), device, 401, expired},
		{"empty", func() string { return "" }, good(), device, 400, "common.invalid_input"},
		{"huge", func() string { return strings.Repeat("A", 10_000) }, good(), device, 400, "common.invalid_input"},
		{"a huge body", func() string { return strings.Repeat("A", 40_000) }, good(), device, 413, "common.payload_too_large"},
		{"with NUL", func() string { return "\x00" + strings.Repeat("A", 42) }, good(), device, 401, expired},
		{"SQL", func() string { return "' OR 1=1 --" }, good(), device, 401, expired},
		{"the token of another user", func() string { return h.firstStep("beat@example.ch", device...).text("token") }, good(), device, 401, wrongFactor},
		{"no answer", nil, object("code", ""), device, 400, "common.invalid_input"},
		{"two answers", nil, map[string]any{"code": "111111", "recovery_code": "x"}, device, 400, "common.invalid_input"},
		{"a password", nil, object("password", password), device, 400, "common.invalid_input"},
		{"a code with letters", nil, object("code", "11111l"), device, 401, wrongFactor},
		{"an empty passkey", nil, object("passkey", map[string]any{}), device, 401, wrongFactor},
		{"an array as a passkey", nil, object("passkey", []any{}), device, 400, "common.invalid_input"},
		{"the passkey of another request", nil, passkeyAnswer(options, "anna's key"), device, 401, wrongFactor},
	} {
		t.Run(attack.name, func(t *testing.T) {
			token := ""
			if attack.token != nil {
				token = attack.token()
			} else {
				token = h.firstStep("anna@example.ch", device...).text("token")
			}
			h.expect(attack.name, h.secondStep(token, attack.body, attack.headers...), attack.status, attack.code)
			h.clock.Advance(time.Hour) // lockouts end, failures stay counted
			// A right answer resets the failures.
			h.expect("the user", h.secondStep(h.firstStep("anna@example.ch", device...).text("token"), good(), device...), 200, "")
		})
	}
}

func TestSecondStep_Expires(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	h.factors.enrol(anna, factor.TOTP)
	step := h.firstStep("anna@example.ch").text("token")
	h.clock.Advance(5*time.Minute - time.Millisecond)
	h.expect("in time", h.secondStep(step, object("code", "wrong")), 401, wrongFactor)
	h.clock.Advance(time.Millisecond)
	h.expect("after five minutes", h.secondStep(step, object("code", h.factors.code(anna, "111111"))), 401, expired)

	step = h.firstStep("anna@example.ch").text("token")
	h.clock.Advance(-time.Hour)
	h.expect("from the future", h.secondStep(step, object("code", "111111")), 401, expired)
	h.clock.Advance(2 * time.Hour)
	if err := h.auth.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := h.db.QueryRow(t.Context(), `SELECT count(*) FROM auth_challenges`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d challenges are left, %v", left, err)
	}
}

// A change of the password or of the user's status ends open sign-ins, too.
func TestSecondStep_EndsWithAChangeOfTheUser(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	h.factors.enrol(anna, factor.TOTP)
	code := object("code", h.factors.code(anna, "111111"))
	for what, change := range map[string]func(tx *store.Tx) error{
		"password": func(tx *store.Tx) error {
			hash, err := h.auth.HashPassword(t.Context(), password)
			if err != nil {
				return err
			}
			return h.auth.SetPassword(t.Context(), tx, anna, hash)
		},
		"sessions": func(tx *store.Tx) error { return h.auth.EndSessions(t.Context(), tx, anna, "") },
		"status": func(tx *store.Tx) error {
			_, err := tx.Exec(t.Context(), `UPDATE users SET status = 'disabled' WHERE id = $1`, anna)
			return err
		},
	} {
		h.setStatus(anna, "active")
		step := h.firstStep("anna@example.ch").text("token")
		h.inTx(change)
		if a := h.secondStep(step, code); a.status != 401 || a.text("access_token") != "" {
			t.Errorf("%s: got %d %s", what, a.status, a.body)
		}
	}
}

func (h *harness) setStatus(userID, status string) {
	h.inTx(func(tx *store.Tx) error {
		_, err := tx.Exec(h.Context(), `UPDATE users SET status = $2 WHERE id = $1`, userID, status)
		return err
	})
}

// Fifty parallel guesses, for one sign-in or for many, get at most five evaluated, and a restart starts no new count.
func TestSecondStep_ParallelGuesses(t *testing.T) {
	for what, many := range map[string]bool{"one sign-in": false, "many sign-ins": true} {
		t.Run(what, func(t *testing.T) {
			h := newHarness(t)
			anna := h.user("anna@example.ch")
			h.factors.enrol(anna, factor.TOTP)
			tokens := make([]string, 50)
			for i := range tokens {
				if tokens[i] = tokens[0]; many || i == 0 {
					tokens[i] = h.firstStep("anna@example.ch").text("token")
				}
			}
			var wait sync.WaitGroup
			for i, token := range tokens {
				wait.Go(func() {
					a, err := h.try("POST", "/authenticate/factor", map[string]string{"token": token, "code": fmt.Sprint(100_000 + i)})
					if err != nil || a.status == 200 || a.status >= 500 {
						t.Errorf("%d %s %v", a.status, a.body, err)
					}
				})
			}
			wait.Wait()
			if h.factors.evaluated > 5 {
				t.Errorf("%d guesses were evaluated", h.factors.evaluated)
			}
			h.restart()
			h.secondStep(tokens[len(tokens)-1], object("code", "200000"))
			h.secondStep(h.firstStep("anna@example.ch").text("token"), object("code", h.factors.code(anna, "111111")))
			if h.factors.evaluated > 5 {
				t.Errorf("%d guesses were evaluated after a restart", h.factors.evaluated)
			}
		})
	}
}

func TestSecondStep_LocksOutByUserAndNotByPassword(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	h.factors.enrol(anna, factor.TOTP)
	step := h.firstStep("anna@example.ch").text("token")
	for range 5 {
		h.expect("a wrong code", h.secondStep(step, object("code", "wrong")), 401, wrongFactor)
	}
	h.expect("the sixth, although right", h.secondStep(step, object("code", h.factors.code(anna, "111111"))), 401, expired)
	step = h.firstStep("anna@example.ch").text("token") // the password is not locked out
	h.expect("a right password resets nothing", h.secondStep(step, object("code", "111111")), 429, lockedOut)
	h.clock.Advance(seconds(2))
	h.expect("a wrong code after the lockout", h.secondStep(step, object("code", "wrong")), 401, wrongFactor)
	h.expect("the next lockout", h.secondStep(step, object("code", "111111")), 429, lockedOut)
	h.clock.Advance(seconds(3))
	h.expect("still locked out", h.secondStep(step, object("code", "111111")), 429, lockedOut)
	h.clock.Advance(seconds(1))
	h.expect("the right code", h.secondStep(step, object("code", "111111")), 200, "")
	step = h.firstStep("anna@example.ch").text("token")
	h.expect("failures are forgotten", h.secondStep(step, object("code", "wrong")), 401, wrongFactor)
	h.expect("no lockout", h.secondStep(step, object("code", h.factors.code(anna, "222222"))), 200, "")
}

// Wrong codes within a session count like those of sign-ins.
func TestReauthenticate_LocksOut(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	h.factors.enrol(anna, factor.TOTP)
	token := h.completeSignIn("anna@example.ch", object("code", h.factors.code(anna, "111111"))).text("access_token")
	evaluated := h.factors.evaluated
	var wait sync.WaitGroup
	for i := range 50 {
		wait.Go(func() {
			if _, err := h.try("POST", "/v1/users/"+anna+"/reauthenticate", map[string]string{"code": fmt.Sprint(i)}, "Authorization", "Bearer "+token); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if got := h.factors.evaluated - evaluated; got > 5 {
		t.Errorf("%d guesses were evaluated", got)
	}
	h.expect("a right code", h.again(anna, token, object("code", h.factors.code(anna, "222222"))), 429, lockedOut)
	h.expect("the password", h.again(anna, token, object("password", password)), 200, "")
}

func TestReauthenticate_Passkey(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	h.factors.enrol(anna, factor.Passkey)
	h.factors.keys["anna's key"] = anna
	signIn := func() string {
		step := h.firstStep("anna@example.ch")
		return h.secondStep(step.text("token"), passkeyAnswer(step, "anna's key")).text("access_token")
	}
	token, other := signIn(), signIn()
	options := func(token string) answer {
		return h.call("POST", "/v1/users/"+anna+"/reauthenticate/options", nil, "Authorization", "Bearer "+token)
	}
	h.clock.Advance(11 * time.Minute)
	h.expect("stale", h.get("/factor", token), 401, stale)
	asked := options(token)
	if fmt.Sprint(asked.json["methods"]) != "[password passkey]" {
		t.Errorf("got %s", asked.body)
	}
	body := passkeyAnswer(asked, "anna's key")
	body["token"] = asked.text("token")
	h.expect("from another session", h.again(anna, other, body), 400, "common.invalid_input")
	h.expect("the passkey", h.again(anna, token, body), 200, "")
	h.expect("fresh", h.get("/factor", token), 200, "")
	h.expect("the other session", h.get("/factor", other), 401, stale)
	h.expect("twice", h.again(anna, token, body), 400, "common.invalid_input")
	asked = options(token)
	body["token"] = asked.text("token")
	h.expect("the assertion of the request before", h.again(anna, token, body), 400, "common.invalid_input")
}

func TestMethods(t *testing.T) {
	h := newHarness(t)
	if got := h.call("GET", "/authenticate/methods", nil); got.body != `{"password":true,"passkey":true,"oidc":null}` {
		t.Errorf("got %s", got.body)
	}
	h.auth.SetProvider("Example ID")
	if got := h.call("GET", "/authenticate/methods", nil); got.body != `{"password":true,"passkey":true,"oidc":{"name":"Example ID"}}` {
		t.Errorf("got %s", got.body)
	}
}

// A factor that was enrolled after the decision that nothing is missing counts: the sign-in begins again.
func TestOpenFederatedSession_NeedsTheFactorOfTheUser(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	open := func(amr ...string) error {
		return h.db.InTx(t.Context(), func(tx *store.Tx) error {
			_, err := h.auth.OpenFederatedSession(t.Context(), tx, anna, amr, tx.Now())
			return err
		})
	}
	if err := open("fed"); err != nil {
		t.Errorf("without a factor: %v", err)
	}
	h.factors.enrol(anna, factor.TOTP)
	if err := open("fed"); !errors.Is(err, apierr.Unavailable) {
		t.Errorf("with a factor: %v", err)
	}
	if err := open("fed", "mfa"); err != nil {
		t.Errorf("with two factors of the provider: %v", err)
	}
}
