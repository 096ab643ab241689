package auth_test

import (
	"testing"
	"time"

	"kontor/modules/identity/auth"
	"kontor/modules/kit/factor"
	"kontor/server/access"
	"kontor/store"
)

const required = "auth_m.factor_required"

// requireOf makes a role require a second factor after a grace of two weeks.
func requireOf(role string) func(*auth.Options) {
	return func(o *auth.Options) { o.RequiredRoles, o.FactorGrace = []string{role}, 14*24*time.Hour }
}

func TestDuty(t *testing.T) {
	h := newHarness(t, requireOf(access.Customer))
	anna, beat := h.user("anna@example.ch"), h.user("beat@example.ch")
	const day = 24 * time.Hour
	token := func() string { return h.mustSignIn("anna@example.ch").text("access_token") }
	token()
	h.clock.Advance(30 * day)
	h.expect("no user of the role has a factor", h.get("/any", token()), 200, "")

	h.factors.enrol(beat, factor.TOTP)
	h.expect("the grace begins", h.get("/any", token()), 200, "")
	h.clock.Advance(14*day - time.Minute)
	last := token()
	h.expect("in the last minute", h.get("/any", last), 200, "")
	h.clock.Advance(time.Minute)
	h.expect("the grace is over", h.get("/any", last), 403, required)
	h.restart()
	h.expect("after a restart", h.get("/any", last), 403, required)
	late := token()
	h.expect("signing in again", h.get("/any", late), 403, required)
	h.expect("a list of rows", h.getSessions(anna, late), 403, required)
	h.expect("to authenticate again stays open", h.again(anna, late, object("password", password)), 200, "")
	h.expect("options stay open", h.call("POST", "/v1/users/"+anna+"/reauthenticate/options", nil, "Authorization", "Bearer "+late), 200, "")

	h.factors.enrol(anna, factor.TOTP)
	h.inTx(func(tx *store.Tx) error {
		h.auth.Changed(tx, anna)
		return nil
	})
	h.expect("with a factor", h.get("/any", late), 200, "")
	h.expect("out of reach is only the second step", h.get("/factor", late), 401, stale)
	h.factors.enrol(anna)
	h.inTx(func(tx *store.Tx) error {
		h.auth.Changed(tx, anna)
		return nil
	})
	h.expect("without it there is no second grace", h.get("/any", late), 403, required)
	h.expect("signing out stays open", h.call("POST", "/v1/logout", nil, "Authorization", "Bearer "+late), 200, "")

	h.factors.enrol(beat)
	h.expect("the last factor of the role is gone", h.get("/any", token()), 200, "")
	h.factors.enrol(beat, factor.TOTP)
	h.expect("the grace begins again", h.get("/any", token()), 200, "")
}

func TestDuty_IsThatOfTheRequiredRoles(t *testing.T) {
	other := store.NewID()
	h := newHarness(t, requireOf(other))
	anna := h.user("anna@example.ch", access.Customer, other)
	beat, carla := h.user("beat@example.ch"), h.user("carla@example.ch", access.Customer, other)
	h.factors.enrol(carla, factor.Passkey)
	sign := func(email string) string { return h.mustSignIn(email).text("access_token") }
	sign("anna@example.ch")
	sign("beat@example.ch")
	h.clock.Advance(15 * 24 * time.Hour)
	late := sign("anna@example.ch")
	h.expect("with the role", h.get("/any", late), 403, required)
	h.expect("without it", h.get("/any", sign("beat@example.ch")), 200, "")
	h.inTx(func(tx *store.Tx) error {
		h.auth.Changed(tx, anna)
		_, err := tx.Exec(t.Context(), `DELETE FROM user_roles WHERE user_id = $1 AND role_id = $2`, anna, other)
		return err
	})
	h.expect("the role is taken away", h.get("/any", late), 200, "")
	_ = beat
}

// A rule that comes into force reaches sessions that are refreshed, too.
func TestDuty_BeginsWithARefresh(t *testing.T) {
	h := newHarness(t, requireOf(access.Customer))
	h.user("anna@example.ch")
	beat := h.user("beat@example.ch")
	tokens := h.mustSignIn("anna@example.ch")
	h.factors.enrol(beat, factor.TOTP)
	for range 15 {
		h.expect("meanwhile", h.get("/any", tokens.text("access_token")), 200, "")
		h.clock.Advance(23 * time.Hour)
		tokens = h.call("POST", "/v1/token/refresh", map[string]string{"refresh_token": tokens.text("refresh_token")})
	}
	h.clock.Advance(14 * time.Hour)
	tokens = h.call("POST", "/v1/token/refresh", map[string]string{"refresh_token": tokens.text("refresh_token")})
	h.expect("after two weeks", h.get("/any", tokens.text("access_token")), 403, required)
}
