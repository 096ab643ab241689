package auth_test

import (
	"strings"
	"testing"
	"time"

	"kontor/modules/identity/auth"
)

func TestAPIKeys_Expire(t *testing.T) {
	h := newHarness(t)
	admin := []string{"Authorization", "Bearer " + h.adminToken()}
	at := h.clock.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano)
	made := h.call("POST", "/v1/api-keys", map[string]any{"name": "guest", "expires_at": at}, admin...)
	h.expect("create", made, 201, "")
	if !strings.Contains(made.body, `"expires_at":"`+at[:19]) || !strings.Contains(made.body, `"scopes":["*"]`) {
		t.Errorf("got %s", made.body)
	}
	key := made.text("key")
	h.expect("before", h.callWithKey(key), 200, "") // it is remembered from here on
	h.clock.Advance(time.Hour - time.Millisecond)
	h.expect("the last moment", h.callWithKey(key), 200, "")
	h.clock.Advance(time.Millisecond)
	h.expect("at its time", h.callWithKey(key), 401, "common.unauthorized")
	h.restart()
	h.expect("after a restart", h.callWithKey(key), 401, "common.unauthorized")
}

func TestAPIKeys_RejectInvalidLimits(t *testing.T) {
	h := newHarness(t)
	h.auth.Peers.Scopes = []string{"auth.public"}
	admin := []string{"Authorization", "Bearer " + h.adminToken()}
	for name, body := range map[string]map[string]any{
		"a scope that does not exist": {"scopes": []string{"auth.keys"}},
		"a path":                      {"scopes": []string{"GET /v1/public-endpoint"}},
		"one of two does not exist":   {"scopes": []string{"auth.public", "*"}},
		"no scope":                    {"scopes": []string{}},
		"a scope that is no text":     {"scopes": []int{1}},
		"an end in the past":          {"expires_at": h.clock.Now().UTC().Format(time.RFC3339)},
		"an end that is no time":      {"expires_at": "tomorrow"},
		"an end that is no text":      {"expires_at": 1},
		"a thousand scopes at once":   {"scopes": strings.Split(strings.Repeat("auth.public ", 1000), " ")},
	} {
		body["name"] = "test"
		h.expect(name, h.call("POST", "/v1/api-keys", body, admin...), 400, "common.invalid_input")
	}
	if n := h.call("GET", "/v1/api-keys", nil, admin...).json["total"]; n != 0.0 {
		t.Errorf("%v keys were created", n)
	}
	made := h.call("POST", "/v1/api-keys", map[string]any{"name": "test", "scopes": []string{"auth.public", "auth.public"}}, admin...)
	h.expect("one scope, twice", made, 201, "")
	if !strings.Contains(made.body, `"scopes":["auth.public"]`) {
		t.Errorf("got %s", made.body)
	}
	h.expect("use", h.callWithKey(made.text("key")), 200, "")
}

func TestAPIKeys_AreLimitedToTheirScopes(t *testing.T) {
	h := newHarness(t)
	h.auth.Peers.Scopes = []string{"auth.public", "users.register"}
	made, err := h.auth.CreateKey(t.Context(), "test", auth.KeyLimits{Scopes: []string{"users.register"}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // from the database, then from the cache
		h.expect("another endpoint", h.callWithKey(made.Key), 403, "common.rbac_no_rec_access")
	}
	h.restart()
	h.expect("after a restart", h.callWithKey(made.Key), 403, "common.rbac_no_rec_access")
}
