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

// A later use of a refresh token ends the session.
func TestRefresh_ReuseEndsTheSession(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	first, other := h.mustSignIn("anna@example.ch"), h.mustSignIn("anna@example.ch")
	second := h.refresh(first.text("refresh_token"))
	h.clock.Advance(20*time.Second + time.Millisecond)
	h.expect("before", h.getSessions(anna, second.text("access_token")), 200, "")
	h.expect("reuse", h.refresh(first.text("refresh_token")), 401, "auth_m.invalid_refresh_token")
	h.expect("access token of the session", h.getSessions(anna, second.text("access_token")), 401, "common.unauthorized")
	h.expect("first access token", h.getSessions(anna, first.text("access_token")), 401, "common.unauthorized")
	h.expect("refresh token of the session", h.refresh(second.text("refresh_token")), 401, "auth_m.invalid_refresh_token")
	h.expect("another session", h.getSessions(anna, other.text("access_token")), 200, "")
}

// An exchange whose answer was lost can be repeated for 20 seconds, with the same tokens as its answer.
func TestRefresh_RepeatsALostAnswer(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	first := h.mustSignIn("anna@example.ch")
	second := h.refresh(first.text("refresh_token"))
	h.expect("first", second, 200, "")
	for range 2 {
		h.clock.Advance(10 * time.Second)
		again := h.refresh(first.text("refresh_token"))
		h.expect("again", again, 200, "")
		for _, name := range []string{"access_token", "refresh_token", "user_id", "token_type"} {
			if again.text(name) != second.text(name) {
				t.Errorf("%s: got %s, want %s", name, again.text(name), second.text(name))
			}
		}
	}
	if left, _ := h.refresh(first.text("refresh_token")).json["expires_in"].(float64); left > 3580 || left < 3579 {
		t.Errorf("got %v seconds, want those that remain", left)
	}
	h.expect("the access token", h.getSessions(anna, second.text("access_token")), 200, "")
	h.expect("the refresh token", h.refresh(second.text("refresh_token")), 200, "")
}

// Only the token that was used last is answered again: an older one was copied.
func TestRefresh_AnOlderTokenEndsTheSession(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	first := h.mustSignIn("anna@example.ch")
	second := h.refresh(first.text("refresh_token"))
	third := h.refresh(second.text("refresh_token"))
	h.expect("third", third, 200, "")
	h.expect("the token before the last one", h.refresh(first.text("refresh_token")), 401, "auth_m.invalid_refresh_token")
	h.expect("access token of the session", h.getSessions(anna, third.text("access_token")), 401, "common.unauthorized")
	h.expect("the last token", h.refresh(second.text("refresh_token")), 401, "auth_m.invalid_refresh_token")
	h.expect("its successor", h.refresh(third.text("refresh_token")), 401, "auth_m.invalid_refresh_token")
}

// After the end of a session, nothing is repeated.
func TestRefresh_IsNotRepeatedAfterTheEndOfTheSession(t *testing.T) {
	h := newHarness(t)
	h.user("anna@example.ch")
	first := h.mustSignIn("anna@example.ch")
	second := h.refresh(first.text("refresh_token"))
	h.expect("logout", h.logout(second.text("access_token")), 200, "")
	h.expect("after it", h.refresh(first.text("refresh_token")), 401, "auth_m.invalid_refresh_token")
	h.expect("the new token", h.refresh(second.text("refresh_token")), 401, "auth_m.invalid_refresh_token")
}

// A clock that was set back does not make an old token valid.
func TestRefresh_IsNotRepeatedLongBeforeItsUse(t *testing.T) {
	h := newHarness(t)
	h.user("anna@example.ch")
	first := h.mustSignIn("anna@example.ch")
	h.expect("first", h.refresh(first.text("refresh_token")), 200, "")
	h.clock.Advance(-time.Minute)
	h.expect("again", h.refresh(first.text("refresh_token")), 401, "auth_m.invalid_refresh_token")
}

// Concurrent exchanges of one token have the same answer.
func TestRefresh_ConcurrentExchangesGetTheSamePair(t *testing.T) {
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
	pairs := map[string]bool{}
	for range clients {
		a := <-answers
		h.expect("each", a, 200, "")
		pairs[a.text("access_token")+" "+a.text("refresh_token")] = true
	}
	if len(pairs) != 1 {
		t.Errorf("got %d pairs, want one", len(pairs))
	}
	h.expect("the session", h.getSessions(anna, first.text("access_token")), 200, "")
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
