package auth_test

import (
	"encoding/base64"
	"testing"
	"time"
)

func (w *world) refresh(token string) answer {
	w.Helper()
	return w.call("POST", "/v1/token/refresh", map[string]string{"refresh_token": token})
}

func TestRefresh_Rotates(t *testing.T) {
	w := newWorld(t)
	anna := w.user("anna@example.ch")
	first := w.tokens("anna@example.ch")
	w.clock.Advance(time.Hour)
	w.expect("expired access token", w.sessions(anna, first.text("access_token")), 401, "common.unauthorized")
	second := w.refresh(first.text("refresh_token"))
	w.expect("refresh", second, 200, "")
	if second.text("user_id") != anna || second.text("refresh_token") == first.text("refresh_token") || second.json["expires_in"] != 3600.0 {
		t.Errorf("got %s", second.body)
	}
	w.expect("new access token", w.sessions(anna, second.text("access_token")), 200, "")
	w.clock.Advance(24*time.Hour - time.Millisecond)
	third := w.refresh(second.text("refresh_token"))
	w.expect("in the last moment", third, 200, "")
	w.clock.Advance(24 * time.Hour)
	w.expect("too late", w.refresh(third.text("refresh_token")), 401, "auth_m.invalid_refresh_token")
}

// A second use of a refresh token ends the session.
func TestRefresh_ReuseEndsTheSession(t *testing.T) {
	w := newWorld(t)
	anna := w.user("anna@example.ch")
	first, other := w.tokens("anna@example.ch"), w.tokens("anna@example.ch")
	second := w.refresh(first.text("refresh_token"))
	w.expect("before", w.sessions(anna, second.text("access_token")), 200, "")
	w.expect("reuse", w.refresh(first.text("refresh_token")), 401, "auth_m.invalid_refresh_token")
	w.expect("access token of the session", w.sessions(anna, second.text("access_token")), 401, "common.unauthorized")
	w.expect("first access token", w.sessions(anna, first.text("access_token")), 401, "common.unauthorized")
	w.expect("refresh token of the session", w.refresh(second.text("refresh_token")), 401, "auth_m.invalid_refresh_token")
	w.expect("another session", w.sessions(anna, other.text("access_token")), 200, "")
}

// Of concurrent exchanges of one token one succeeds, and the others end the session.
func TestRefresh_OnlyOneSucceeds(t *testing.T) {
	const clients = 8
	w := newWorld(t)
	anna := w.user("anna@example.ch")
	first := w.tokens("anna@example.ch")
	answers := make(chan answer, clients)
	for range clients {
		go func() {
			a, err := w.try("POST", "/v1/token/refresh", map[string]string{"refresh_token": first.text("refresh_token")})
			if err != nil {
				t.Error(err)
			}
			answers <- a
		}()
	}
	succeeded := 0
	for range clients {
		if a := <-answers; a.status == 200 {
			succeeded++
		}
	}
	w.expect("the session of a copied token", w.sessions(anna, first.text("access_token")), 401, "common.unauthorized")
	if succeeded != 1 {
		t.Errorf("%d exchanges succeeded", succeeded)
	}
}

func TestRefresh_RejectsInvalidTokens(t *testing.T) {
	w := newWorld(t)
	w.user("anna@example.ch")
	good := w.tokens("anna@example.ch").text("refresh_token")
	raw, err := base64.RawURLEncoding.DecodeString(good)
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{
		"unknown": base64.RawURLEncoding.EncodeToString(make([]byte, 32)), "garbage": "x", "padded": base64.URLEncoding.EncodeToString(raw),
		"with a line break": good[:10] + "\n" + good[10:], "longer": good + "AAAA",
	} {
		w.expect(name, w.refresh(token), 401, "auth_m.invalid_refresh_token")
	}
	w.expect("missing", w.call("POST", "/v1/token/refresh", map[string]string{}), 400, "common.invalid_input")
	w.expect("still good", w.refresh(good), 200, "")
}

// Refreshing does not extend a session beyond thirty days after its sign-in.
func TestRefresh_EndsAfterThirtyDays(t *testing.T) {
	w := newWorld(t)
	w.user("anna@example.ch")
	tokens := w.tokens("anna@example.ch")
	for day := range 40 {
		w.clock.Advance(24*time.Hour - time.Minute)
		next := w.refresh(tokens.text("refresh_token"))
		if next.status != 200 {
			if day != 30 {
				t.Errorf("ended on day %d", day)
			}
			return
		}
		tokens = next
	}
	t.Error("never ended")
}
