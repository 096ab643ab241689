package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// TestHostile_KeysAndEvents runs attacks with an API key, and attacks on the audit trail.
func TestHostile_KeysAndEvents(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "data"))
	admin, keyed, anonymous := p.admin(), p.keyed(), p.client()
	me := admin.userID(t)
	_, registration := admin.createKey(t, `{"name":"form","scopes":["users.register"]}`)
	form := p.client("X-API-Key", registration)
	revoked, old := admin.createKey(t, `{"name":"old"}`)
	admin.do(t, "DELETE", "/v1/api-keys/"+revoked, "", 200)
	var registered struct {
		AccessToken string `json:"access_token"`
		UserID      string `json:"user_id"`
	}
	form.do(t, "POST", "/v1/users/initiate-registration", `{"credential_type":"email","credential_value":"mallory@example.ch",
		"password":"ten plain words nobody else would choose","terms_accepted":true,"privacy_policy_accepted":true}`, 201).into(t, &registered)
	mallory := p.client("Authorization", "Bearer "+registered.AccessToken)
	const noAccess = "common.rbac_no_rec_access"
	runAttacks(t, []attack{
		{name: "a key for registration triggers", by: form, method: "POST", path: "/v1/notifications/trigger", body: `{"user_ids":["` + me + `"]}`, status: 403, code: noAccess},
		{name: "a key for registration checks its validity", by: form, method: "GET", path: "/v1/public-endpoint", status: 403, code: noAccess},
		{name: "a HEAD request bypasses the scope", by: form, method: "HEAD", path: "/v1/public-endpoint", status: 403},
		{name: "a key creates a key", by: keyed, method: "POST", path: "/v1/api-keys", body: `{"name":"mine"}`, status: 401},
		{name: "a key reads the audit trail", by: keyed, method: "GET", path: "/v1/audit", status: 401},
		{name: "a key opens a stream", by: keyed, method: "GET", path: "/v1/notifications/sse", status: 401},
		{name: "a revoked key", by: p.client("X-API-Key", old), method: "GET", path: "/v1/public-endpoint", status: 401},
		{name: "two keys in one request", by: p.client("X-API-Key", registration+", "+apiKey), method: "GET", path: "/v1/public-endpoint", status: 401},
		{name: "key and bearer", by: admin.with("X-API-Key", apiKey), method: "GET", path: "/v1/public-endpoint", status: 400},
		{name: "a scope that is a bearer route", by: admin, method: "POST", path: "/v1/api-keys", body: `{"name":"x","scopes":["audit.list"]}`, status: 400},
		{name: "an empty list of scopes", by: admin, method: "POST", path: "/v1/api-keys", body: `{"name":"x","scopes":[]}`, status: 400},
		{name: "all scopes and another one", by: admin, method: "POST", path: "/v1/api-keys", body: `{"name":"x","scopes":["*","users.register"]}`, status: 400},
		{name: "a scope with a comma", by: admin, method: "POST", path: "/v1/api-keys", body: `{"name":"x","scopes":["users.register,notifications.trigger"]}`, status: 400},
		{name: "a key that has expired already", by: admin, method: "POST", path: "/v1/api-keys", body: `{"name":"x","expires_at":"2001-01-01T00:00:00Z"}`, status: 400},
		{name: "an expiry beyond the year 9999", by: admin, method: "POST", path: "/v1/api-keys", body: `{"name":"x","expires_at":"99999-01-01T00:00:00Z"}`, status: 400},
		{name: "a registrant reads the trail", by: mallory, method: "GET", path: "/v1/audit", status: 403, code: noAccess},
		{name: "a registrant reads the outbox", by: mallory, method: "GET", path: "/v1/notifications/deliveries", status: 403, code: noAccess},
		{name: "a registrant creates a key", by: mallory, method: "POST", path: "/v1/api-keys", body: `{"name":"x"}`, status: 403, code: noAccess},
		{name: "an anonymous client reads the trail", by: anonymous, method: "GET", path: "/v1/audit?search.kind=sign_in", status: 401},
		{name: "an entry is deleted", by: admin, method: "DELETE", path: "/v1/audit/1", status: 405},
		{name: "an entry is written", by: admin, method: "POST", path: "/v1/audit", body: `{"action":"nothing"}`, status: 405},
		{name: "SQL in a kind", by: admin, method: "GET", path: "/v1/audit?search.kind=change,x')%20OR%201=1--", status: 200, excludes: []string{`"kind":"denial"`}},
		{name: "a request id that forges a log line", by: admin.with("X-Request-ID", `a"},{"kind":"x`), method: "GET", path: "/v1/audit?limit=1", status: 200},
		{name: "the trigger sends a security event", by: keyed, method: "POST", path: "/v1/notifications/trigger", body: `{"event":"password_changed","user_ids":["` + me + `"]}`, status: 200},
	})

	// The attempts are in the audit trail, and no message was sent.
	if n := admin.total(t, "/v1/notifications/deliveries?search.user_id="+me); n != 0 {
		t.Errorf("the trigger created %d deliveries", n)
	}
	marked := admin.do(t, "GET", "/v1/notifications?search.user_id="+me+"&search.event=password_changed", "", 200).body
	if !strings.Contains(marked, `"test":true`) {
		t.Errorf("the notification is not marked as a test: %s", marked)
	}
	for query, want := range map[string]int{
		"search.kind=denial&search.actor=" + registered.UserID: 3, "search.action=api_keys.refused": 1,
		"search.action=notifications.outbox_read&search.actor=" + me: 1,
	} {
		if n := admin.total(t, "/v1/audit?"+query); n < want {
			t.Errorf("%s finds %d entries, want at least %d", query, n, want)
		}
	}
	if n := admin.total(t, "/v1/audit?search.request_id=a*forges*"); n != 0 {
		t.Errorf("a forged request id is in %d entries", n)
	}
}

// The settings are those of an operator who has not considered the trigger.
func TestHostile_TheTriggerIsDisabledOnPublicServers(t *testing.T) {
	for name, args := range map[string][]string{
		"a proxy in front":        {"--server.trusted_proxies", "127.0.0.1"},
		"a public address":        {"--server.base_url", "https://bank.example"},
		"switched off, old value": {"--notifications.trigger.enabled=no"},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, filepath.Join(t.TempDir(), "data"), args...)
			p.keyed().do(t, "POST", "/v1/notifications/trigger", `{}`, 405) // not 404: the path matches that of a notification
		})
	}
	p := start(t, filepath.Join(t.TempDir(), "data"), "--server.base_url", "https://bank.example", "--notifications.trigger.enabled=true")
	p.keyed().do(t, "POST", "/v1/notifications/trigger", `{}`, 200)
}

// The test guesses keys until the network is throttled. The server must then reject the right key, too.
func TestHostile_GuessingKeysIsThrottled(t *testing.T) {
	p := startWith(t, secretsEnv, "--data.dir", filepath.Join(t.TempDir(), "data"), "--rate_limits.private_per_minute", "20")
	right, wrong := p.keyed(), p.client("X-API-Key", "a-key-that-nobody-has-made")
	for range 15 {
		right.do(t, "GET", "/v1/public-endpoint", "", 200)
	}
	throttled := 0
	for range 25 {
		a, err := wrong.try("GET", "/v1/public-endpoint", "")
		if err != nil {
			t.Fatal(err)
		}
		if a.status == http.StatusTooManyRequests {
			throttled++
		} else if a.status != http.StatusUnauthorized {
			t.Fatalf("got %d %s", a.status, a.body)
		}
	}
	if throttled == 0 || throttled > 5 {
		t.Errorf("%d of 25 guesses were throttled, want those beyond 20: requests with valid keys do not count for the network", throttled)
	}
	right.do(t, "GET", "/v1/public-endpoint", "", http.StatusTooManyRequests)
}

// The test disables a user with an open stream while frames are being written.
func TestHostile_ARevokedStreamReceivesNothing(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "data"))
	admin := p.admin()
	keyed := p.keyed()
	for round := range 10 {
		login := fmt.Sprintf("anna%d@example.ch", round)
		const password = "eleven plain words nobody else would choose"
		var user struct {
			UserID string `json:"user_id"`
		}
		keyed.do(t, "POST", "/v1/users/initiate-registration", fmt.Sprintf(`{"credential_type":"username","credential_value":%q,
			"password":%q,"terms_accepted":true,"privacy_policy_accepted":true}`, strings.NewReplacer("@", "_", ".", "_").Replace(login), password), 201).into(t, &user)
		admin.do(t, "PATCH", "/v1/users/"+user.UserID, `{"status":"active"}`, 200)
		admin.do(t, "PUT", "/v1/users/"+user.UserID+"/roles", `{"roles":["Advisor"]}`, 200)
		anna := p.signIn(user.UserID, password)
		var stream reader
		ended := stream.follow(t, anna)
		trigger := func() string {
			var created struct {
				ID string `json:"notification_id"`
			}
			keyed.do(t, "POST", "/v1/notifications/trigger", `{"event":"test","user_ids":["`+user.UserID+`"]}`, 200).into(t, &created)
			return created.ID
		}
		for range 20 {
			trigger()
		}
		admin.do(t, "PATCH", "/v1/users/"+user.UserID, `{"status":"disabled"}`, 200)
		for range 5 {
			trigger()
		}
		<-ended
		if n := len(stream.seen()); n > 20 {
			t.Fatalf("round %d: received %d frames, want at most 20", round, n)
		}
	}
}

// The API reports a printed password only to its owner, and until it is changed.
func TestHostile_APrintedPasswordIsReportedToItsOwnerOnly(t *testing.T) {
	p := startWith(t, nil, "--data.dir", filepath.Join(t.TempDir(), "data"), "--rate_limits.enabled=false")
	shown := p.stdout.String()
	password := wordAfter(shown, "password")
	admin := p.signIn(wordAfter(shown, "administrator"), password)
	me := admin.do(t, "GET", "/v1/users/me", "", 200)
	var user struct {
		ID              string
		PasswordPrinted bool `json:"password_printed"`
	}
	if me.into(t, &user); !user.PasswordPrinted {
		t.Errorf("got %s", me.body)
	}
	for _, path := range []string{"/v1/users/" + user.ID, "/v1/users"} {
		if a := admin.do(t, "GET", path, "", 200); strings.Contains(a.body, "password_printed") {
			t.Errorf("%s shows the flag: %s", path, a.body)
		}
	}
	body, err := json.Marshal(map[string]string{"old_password": password, "password": "twelve plain words nobody has printed"})
	if err != nil {
		t.Fatal(err)
	}
	admin.do(t, "PUT", "/v1/users/"+user.ID+"/password", string(body), 200)
	if a := admin.do(t, "GET", "/v1/users/me", "", 200); strings.Contains(a.body, "password_printed") || a.header.Get("ETag") == "" {
		t.Errorf("after the change: %s", a.body)
	}
	given := start(t, filepath.Join(t.TempDir(), "data")).admin()
	if a := given.do(t, "GET", "/v1/users/me", "", 200); strings.Contains(a.body, "password_printed") {
		t.Errorf("a password from the environment: %s", a.body)
	}
}
