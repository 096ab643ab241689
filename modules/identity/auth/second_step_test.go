package auth_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"kontor/modules/kit/factor"
	"kontor/server/apierr"
	"kontor/store"
)

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
	h, anna := newEnrolled(t, factor.TOTP, factor.Passkey, factor.RecoveryCode)
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

func TestSecondStep_PasskeyWithoutAPassword(t *testing.T) {
	h, anna := newEnrolled(t, factor.Passkey, factor.TOTP)
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

func TestSecondStep_Expires(t *testing.T) {
	h, anna := newEnrolled(t, factor.TOTP)
	step := h.firstStep("anna@example.ch").text("token")
	h.clock.Advance(5*time.Minute - time.Millisecond)
	h.expect("in time", h.secondStep(step, object("code", "wrong")), 401, wrongFactor)
	h.clock.Advance(time.Millisecond)
	h.expect("after five minutes", h.secondStep(step, object("code", h.factors.code(anna, "111111"))), 401, expired)

	step = h.firstStep("anna@example.ch").text("token")
	h.clock.Advance(-time.Hour)
	h.expect("from the future", h.secondStep(step, object("code", "wrong")), 401, wrongFactor)
	h.clock.Advance(5*time.Minute - time.Millisecond)
	h.expect("from the future, in time", h.secondStep(step, object("code", "wrong")), 401, wrongFactor)
	h.clock.Advance(time.Millisecond)
	h.expect("from the future, after five minutes", h.secondStep(step, object("code", h.factors.code(anna, "111111"))), 401, expired)
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
	h, anna := newEnrolled(t, factor.TOTP)
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

func TestMethods(t *testing.T) {
	h := newHarness(t)
	if got := h.call("GET", "/authenticate/methods", nil); got.body != `{"password":true,"passkey":true,"oidc":null}` {
		t.Errorf("got %s", got.body)
	}
	h.auth.Peers.ProviderName = "Example ID"
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
