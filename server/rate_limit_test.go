package server_test

import (
	"strings"
	"testing"

	"kontor/server"
	"kontor/server/access"
	"kontor/server/servertest"
)

func TestLimitNetwork_CountsBeforeAuthentication(t *testing.T) {
	address, _ := start(t, nil)
	for i, want := range []int{401, 401, 401, 429} {
		response, body := servertest.Send(t, address, "POST", "/v1/things", `{"name":"a"}`, "Authorization", "Bearer nonsense")
		if response.StatusCode != want {
			t.Fatalf("request %d: got %d %s, want %d", i+1, response.StatusCode, body, want)
		}
		if want == 429 && (response.Header.Get("Retry-After") != "20" || !strings.Contains(body, `"retryable":true`)) {
			t.Errorf("got Retry-After %q and %s, want 20 and retryable", response.Header.Get("Retry-After"), body)
		}
	}
}

func TestLimitCaller_CountsUsersSeparately(t *testing.T) {
	address, _ := start(t, func(o *server.Options) { o.Auth = tokens{cached: true} })
	for _, want := range []string{"2", "1", "0"} {
		response, _ := servertest.Send(t, address, "POST", "/v1/things", `{"name":"a"}`, "Authorization", "Bearer user-creator")
		if got := response.Header.Get("RateLimit-Remaining"); response.StatusCode != 201 || got != want {
			t.Fatalf("got %d with %s remaining, want 201 with %s", response.StatusCode, got, want)
		}
	}
	if response, _ := servertest.Send(t, address, "POST", "/v1/things", `{}`, "Authorization", "Bearer user-creator"); response.StatusCode != 429 {
		t.Errorf("the fourth request got %d, want 429", response.StatusCode)
	}
	if response, _ := servertest.Send(t, address, "POST", "/v1/things", `{}`, "Authorization", "Bearer user-reader"); response.StatusCode != 403 {
		t.Errorf("another user got %d, want 403: the limit of one is not that of the other", response.StatusCode)
	}
}

func TestLimitCaller_AppliesChangedRulesToTheNextRequest(t *testing.T) {
	var policy *access.Current
	address, _ := start(t, func(o *server.Options) { o.Auth, policy = tokens{cached: true}, o.Policy })
	things := func() int {
		response, _ := servertest.Send(t, address, "GET", thingPath, "", "Authorization", "Bearer user-reader")
		return response.StatusCode
	}
	for _, rule := range []struct{ perMinute, allowed int }{{2, 2}, {4, 4}, {1, 1}} {
		policy.Store(access.NewPolicy(access.PolicyData{
			Endpoints: map[string][]string{"user-reader": {"GET /v1/things/{id}"}},
			Limits:    map[string]int{"GET /v1/things/{id}": rule.perMinute},
		}))
		allowed := 0
		for things() == 200 {
			allowed++
		}
		if allowed != rule.allowed {
			t.Errorf("%d a minute: %d requests were accepted", rule.perMinute, allowed)
		}
	}
}

func TestAuthenticate_AcceptsAPIKeysOnTheirRoutesOnly(t *testing.T) {
	address, _ := start(t, nil)
	for name, c := range map[string]struct {
		method, path string
		headers      []string
		status       int
	}{
		"good":                 {"POST", "/v1/keyed", []string{"X-API-Key", "good-key"}, 200},
		"none":                 {"POST", "/v1/keyed", nil, 401},
		"bad":                  {"POST", "/v1/keyed", []string{"X-API-Key", "bad"}, 401},
		"key and bearer":       {"POST", "/v1/keyed", []string{"X-API-Key", "good-key", "Authorization", "Bearer user-reader"}, 400},
		"on a bearer route":    {"GET", thingPath, []string{"X-API-Key", "good-key"}, 401},
		"beside a good bearer": {"GET", thingPath, []string{"X-API-Key", "good-key", "Authorization", "Bearer user-reader"}, 400},
	} {
		t.Run(name, func(t *testing.T) {
			response, body := servertest.Send(t, address, c.method, c.path, "", c.headers...)
			if response.StatusCode != c.status {
				t.Errorf("got %d %s, want %d", response.StatusCode, body, c.status)
			}
			if c.status == 401 && response.Header.Get("WWW-Authenticate") == "" {
				t.Error("401 without WWW-Authenticate")
			}
		})
	}
}

// A network with too many guesses is rejected before its key is checked, so that the responses reveal nothing. Valid
// keys do not count for the network, and guesses do not count for valid keys.
func TestLimitNetwork_CountsBeforeAKeyIsVerified(t *testing.T) {
	address, _ := start(t, func(o *server.Options) { o.PrivatePerMinute = 3 })
	use := func(key string) int {
		t.Helper()
		response, _ := servertest.Send(t, address, "POST", "/v1/keyed", "", "X-API-Key", key)
		return response.StatusCode
	}
	for i, want := range []int{200, 200, 200, 429} {
		if got := use("good-key"); got != want {
			t.Fatalf("good key, request %d: got %d, want %d", i+1, got, want)
		}
	}
	for i, want := range []int{401, 401, 401, 429} {
		if got := use("bad"); got != want {
			t.Fatalf("bad key, request %d: got %d, want %d: good ones must have left the count as it was", i+1, got, want)
		}
	}
	if got := use("another-good-key"); got != 429 {
		t.Errorf("a good key from a network that has guessed too often got %d, want 429", got)
	}
}
