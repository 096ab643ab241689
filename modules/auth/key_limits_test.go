package auth_test

import (
	"strings"
	"testing"
	"time"

	"kontor/modules/auth"
)

func TestAPIKeys_Expire(t *testing.T) {
	w := newWorld(t)
	admin := []string{"Authorization", "Bearer " + w.administrator()}
	at := w.clock.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano)
	made := w.call("POST", "/v1/api-keys", map[string]any{"name": "guest", "expires_at": at}, admin...)
	w.expect("create", made, 201, "")
	if !strings.Contains(made.body, `"expires_at":"`+at[:19]) || !strings.Contains(made.body, `"scopes":["*"]`) {
		t.Errorf("got %s", made.body)
	}
	key := made.text("key")
	w.expect("before", w.withKey(key), 200, "") // it is remembered from here on
	w.clock.Advance(time.Hour - time.Millisecond)
	w.expect("the last moment", w.withKey(key), 200, "")
	w.clock.Advance(time.Millisecond)
	w.expect("at its time", w.withKey(key), 401, "common.unauthorized")
	w.restart()
	w.expect("after a restart", w.withKey(key), 401, "common.unauthorized")
}

func TestAPIKeys_RejectInvalidLimits(t *testing.T) {
	w := newWorld(t)
	w.auth.SetScopes([]string{"auth.public"})
	admin := []string{"Authorization", "Bearer " + w.administrator()}
	for name, body := range map[string]map[string]any{
		"a scope that is none":      {"scopes": []string{"auth.keys"}},
		"a path":                    {"scopes": []string{"GET /v1/public-endpoint"}},
		"one of two is none":        {"scopes": []string{"auth.public", "*"}},
		"no scope":                  {"scopes": []string{}},
		"a scope that is no text":   {"scopes": []int{1}},
		"an end in the past":        {"expires_at": w.clock.Now().UTC().Format(time.RFC3339)},
		"an end that is no time":    {"expires_at": "tomorrow"},
		"an end that is no text":    {"expires_at": 1},
		"a thousand scopes at once": {"scopes": strings.Split(strings.Repeat("auth.public ", 1000), " ")},
	} {
		body["name"] = "test"
		w.expect(name, w.call("POST", "/v1/api-keys", body, admin...), 400, "common.invalid_input")
	}
	if n := w.call("GET", "/v1/api-keys", nil, admin...).json["total"]; n != 0.0 {
		t.Errorf("%v keys were made", n)
	}
	made := w.call("POST", "/v1/api-keys", map[string]any{"name": "test", "scopes": []string{"auth.public", "auth.public"}}, admin...)
	w.expect("one scope, twice", made, 201, "")
	if !strings.Contains(made.body, `"scopes":["auth.public"]`) {
		t.Errorf("got %s", made.body)
	}
	w.expect("use", w.withKey(made.text("key")), 200, "")
}

func TestAPIKeys_AreLimitedToTheirScopes(t *testing.T) {
	w := newWorld(t)
	w.auth.SetScopes([]string{"auth.public", "users.register"})
	made, err := w.auth.CreateKey(t.Context(), "test", auth.KeyLimits{Scopes: []string{"users.register"}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // read, and remembered
		w.expect("another endpoint", w.withKey(made.Key), 403, "common.rbac_no_rec_access")
	}
	w.restart()
	w.expect("after a restart", w.withKey(made.Key), 403, "common.rbac_no_rec_access")
}
