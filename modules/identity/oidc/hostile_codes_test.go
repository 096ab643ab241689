package oidc_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestHostile_OneTimeCodes(t *testing.T) {
	const invalid = "auth_m.oidc_invalid_code"
	for name, c := range map[string]struct {
		use  func(h *harness, b *browser, body map[string]string)
		want string
	}{
		"twice": {func(h *harness, b *browser, body map[string]string) {
			cookie := b.cookie
			b.accept(b.do("POST", "/authenticate/oidc", body))
			b.cookie = cookie
		}, invalid},
		"in another browser, which makes it void": {func(h *harness, _ *browser, body map[string]string) {
			other := h.browser()
			other.signIn(victim) // with a cookie of its own
			other.do("POST", "/authenticate/oidc", body).ExpectError(h.t, http.StatusUnauthorized, invalid)
		}, invalid},
		"without a cookie": {func(_ *harness, b *browser, _ map[string]string) { b.cookie = "" }, invalid},
		"after a minute":   {func(h *harness, _ *browser, _ map[string]string) { h.Clock.Advance(time.Minute) }, invalid},
		"when the clock was set back": {func(h *harness, _ *browser, _ map[string]string) {
			h.Clock.Advance(-time.Hour)
		}, invalid},
		"malformed": {func(_ *harness, _ *browser, body map[string]string) { body["code"] += "=" }, invalid},
		"unknown":   {func(_ *harness, _ *browser, body map[string]string) { body["code"] = strings.Repeat("A", 43) }, invalid},
		"by a user who was disabled": {func(h *harness, _ *browser, _ map[string]string) {
			h.setStatus(h.userOf("sub-victim"), "disabled")
		}, noAccount},
		"by a user who is no longer staff": {func(h *harness, _ *browser, _ map[string]string) {
			h.Admin().Do("PUT", "/v1/users/"+h.userOf("sub-victim")+"/roles", map[string]any{"roles": []string{"Customer"}}).Expect(h.t, http.StatusOK)
		}, noAccount},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t)
			h.link(h.User("Advisor").UserID, "sub-victim")
			b := h.browser()
			body := map[string]string{"code": b.signIn(victim).Get("oidc_code")}
			c.use(h, b, body)
			answer := b.do("POST", "/authenticate/oidc", body)
			if answer.Status < 400 || answer.JSON(t)["code"] != c.want {
				t.Errorf("got %d %s, want %s", answer.Status, answer.Body, c.want)
			}
			b.do("POST", "/authenticate/oidc", body).ExpectError(t, http.StatusUnauthorized, invalid)
		})
	}
}
