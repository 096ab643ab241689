package auth_test

import (
	"encoding/base64"
	"testing"
	"time"
)

func (h *harness) refresh(token string) answer {
	h.Helper()
	return h.call("POST", "/v1/token/refresh", map[string]string{"refresh_token": token})
}

func TestRefresh_Rotates(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	first := h.mustSignIn("anna@example.ch")
	h.clock.Advance(time.Hour)
	h.expect("expired access token", h.getSessions(anna, first.text("access_token")), 401, "common.unauthorized")
	second := h.refresh(first.text("refresh_token"))
	h.expect("refresh", second, 200, "")
	if second.text("user_id") != anna || second.text("refresh_token") == first.text("refresh_token") || second.json["expires_in"] != 3600.0 {
		t.Errorf("got %s", second.body)
	}
	h.expect("new access token", h.getSessions(anna, second.text("access_token")), 200, "")
	h.clock.Advance(24*time.Hour - time.Millisecond)
	third := h.refresh(second.text("refresh_token"))
	h.expect("in the last moment", third, 200, "")
	h.clock.Advance(24 * time.Hour)
	h.expect("too late", h.refresh(third.text("refresh_token")), 401, "auth_m.invalid_refresh_token")
}

// A second use of a refresh token ends the session.
func TestRefresh_ReuseEndsTheSession(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	first, other := h.mustSignIn("anna@example.ch"), h.mustSignIn("anna@example.ch")
	second := h.refresh(first.text("refresh_token"))
	h.expect("before", h.getSessions(anna, second.text("access_token")), 200, "")
	h.expect("reuse", h.refresh(first.text("refresh_token")), 401, "auth_m.invalid_refresh_token")
	h.expect("access token of the session", h.getSessions(anna, second.text("access_token")), 401, "common.unauthorized")
	h.expect("first access token", h.getSessions(anna, first.text("access_token")), 401, "common.unauthorized")
	h.expect("refresh token of the session", h.refresh(second.text("refresh_token")), 401, "auth_m.invalid_refresh_token")
	h.expect("another session", h.getSessions(anna, other.text("access_token")), 200, "")
}

// Of concurrent exchanges of one token one succeeds, and the others end the session.
func TestRefresh_OnlyOneSucceeds(t *testing.T) {
	const clients = 8
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	first := h.mustSignIn("anna@example.ch")
	answers := make(chan answer, clients)
	for range clients {
		go func() {
			a, err := h.try("POST", "/v1/token/refresh", map[string]string{"refresh_token": first.text("refresh_token")})
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
	h.expect("the session of a copied token", h.getSessions(anna, first.text("access_token")), 401, "common.unauthorized")
	if succeeded != 1 {
		t.Errorf("%d exchanges succeeded", succeeded)
	}
}

func TestRefresh_RejectsInvalidTokens(t *testing.T) {
	h := newHarness(t)
	h.user("anna@example.ch")
	good := h.mustSignIn("anna@example.ch").text("refresh_token")
	raw, err := base64.RawURLEncoding.DecodeString(good)
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{
		"unknown": base64.RawURLEncoding.EncodeToString(make([]byte, 32)), "garbage": "x", "padded": base64.URLEncoding.EncodeToString(raw),
		"with a line break": good[:10] + "\n" + good[10:], "longer": good + "AAAA",
	} {
		h.expect(name, h.refresh(token), 401, "auth_m.invalid_refresh_token")
	}
	h.expect("missing", h.call("POST", "/v1/token/refresh", map[string]string{}), 400, "common.invalid_input")
	h.expect("still good", h.refresh(good), 200, "")
}

// Refreshing does not extend a session beyond thirty days after its sign-in.
func TestRefresh_EndsAfterThirtyDays(t *testing.T) {
	h := newHarness(t)
	h.user("anna@example.ch")
	tokens := h.mustSignIn("anna@example.ch")
	for day := range 40 {
		h.clock.Advance(24*time.Hour - time.Minute)
		next := h.refresh(tokens.text("refresh_token"))
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
