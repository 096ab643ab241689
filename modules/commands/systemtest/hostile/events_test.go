package hostile_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

// TestHostile_KeysAndEvents runs attacks with an API key, and attacks on the audit trail.
func TestHostile_KeysAndEvents(t *testing.T) {
	p := systemtest.Start(t, filepath.Join(t.TempDir(), "data"))
	admin, keyed, anonymous := p.Admin(), p.Keyed(), p.Client()
	me := admin.UserID(t)
	_, registration := admin.CreateKey(t, `{"name":"form","scopes":["users.register"]}`)
	form := p.Client("X-API-Key", registration)
	revoked, old := admin.CreateKey(t, `{"name":"old"}`)
	admin.Do(t, "DELETE", "/v1/api-keys/"+revoked, "", 200)
	var registered struct {
		AccessToken string `json:"access_token"`
		UserID      string `json:"user_id"`
	}
	form.Do(t, "POST", "/v1/users/initiate-registration", `{"credential_type":"email","credential_value":"mallory@example.ch",
		"password":"ten plain words nobody else would choose","terms_accepted":true,"privacy_policy_accepted":true}`, 201).Decode(t, &registered)
	mallory := p.Client("Authorization", "Bearer "+registered.AccessToken)
	const noAccess = "common.rbac_no_rec_access"
	systemtest.RunAttacks(t, []systemtest.Attack{
		{Name: "a key for registration triggers", By: form, Method: "POST", Path: "/v1/notifications/trigger", Body: `{"user_ids":["` + me + `"]}`, Status: 403, Code: noAccess},
		{Name: "a key for registration checks its validity", By: form, Method: "GET", Path: "/v1/public-endpoint", Status: 403, Code: noAccess},
		{Name: "a HEAD request bypasses the scope", By: form, Method: "HEAD", Path: "/v1/public-endpoint", Status: 403},
		{Name: "a key creates a key", By: keyed, Method: "POST", Path: "/v1/api-keys", Body: `{"name":"mine"}`, Status: 401},
		{Name: "a key reads the audit trail", By: keyed, Method: "GET", Path: "/v1/audit", Status: 401},
		{Name: "a key opens a stream", By: keyed, Method: "GET", Path: "/v1/notifications/sse", Status: 401},
		{Name: "a revoked key", By: p.Client("X-API-Key", old), Method: "GET", Path: "/v1/public-endpoint", Status: 401},
		{Name: "two keys in one request", By: p.Client("X-API-Key", registration+", "+systemtest.APIKey), Method: "GET", Path: "/v1/public-endpoint", Status: 401},
		{Name: "key and bearer", By: admin.With("X-API-Key", systemtest.APIKey), Method: "GET", Path: "/v1/public-endpoint", Status: 400},
		{Name: "a scope that is a bearer route", By: admin, Method: "POST", Path: "/v1/api-keys", Body: `{"name":"x","scopes":["audit.list"]}`, Status: 400},
		{Name: "an empty list of scopes", By: admin, Method: "POST", Path: "/v1/api-keys", Body: `{"name":"x","scopes":[]}`, Status: 400},
		{Name: "all scopes and another one", By: admin, Method: "POST", Path: "/v1/api-keys", Body: `{"name":"x","scopes":["*","users.register"]}`, Status: 400},
		{Name: "a scope with a comma", By: admin, Method: "POST", Path: "/v1/api-keys", Body: `{"name":"x","scopes":["users.register,notifications.trigger"]}`, Status: 400},
		{Name: "a key that has expired already", By: admin, Method: "POST", Path: "/v1/api-keys", Body: `{"name":"x","expires_at":"2001-01-01T00:00:00Z"}`, Status: 400},
		{Name: "an expiry beyond the year 9999", By: admin, Method: "POST", Path: "/v1/api-keys", Body: `{"name":"x","expires_at":"99999-01-01T00:00:00Z"}`, Status: 400},
		{Name: "a registrant reads the trail", By: mallory, Method: "GET", Path: "/v1/audit", Status: 403, Code: noAccess},
		{Name: "a registrant reads the outbox", By: mallory, Method: "GET", Path: "/v1/notifications/deliveries", Status: 403, Code: noAccess},
		{Name: "a registrant creates a key", By: mallory, Method: "POST", Path: "/v1/api-keys", Body: `{"name":"x"}`, Status: 403, Code: noAccess},
		{Name: "an anonymous client reads the trail", By: anonymous, Method: "GET", Path: "/v1/audit?search.kind=sign_in", Status: 401},
		{Name: "an entry is deleted", By: admin, Method: "DELETE", Path: "/v1/audit/1", Status: 405},
		{Name: "an entry is written", By: admin, Method: "POST", Path: "/v1/audit", Body: `{"action":"nothing"}`, Status: 405},
		{Name: "SQL in a kind", By: admin, Method: "GET", Path: "/v1/audit?search.kind=change,x')%20OR%201=1--", Status: 200, Excludes: []string{`"kind":"denial"`}},
		{Name: "a request id that forges a log line", By: admin.With("X-Request-ID", `a"},{"kind":"x`), Method: "GET", Path: "/v1/audit?limit=1", Status: 200},
		{Name: "the trigger sends a security event", By: keyed, Method: "POST", Path: "/v1/notifications/trigger", Body: `{"event":"password_changed","user_ids":["` + me + `"]}`, Status: 200},
	})

	// The attempts are in the audit trail, and no message was sent.
	if n := admin.Total(t, "/v1/notifications/deliveries?search.user_id="+me); n != 0 {
		t.Errorf("the trigger created %d deliveries", n)
	}
	marked := admin.Do(t, "GET", "/v1/notifications?search.user_id="+me+"&search.event=password_changed", "", 200).Body
	if !strings.Contains(marked, `"test":true`) {
		t.Errorf("the notification is not marked as a test: %s", marked)
	}
	for query, want := range map[string]int{
		"search.kind=denial&search.actor=" + registered.UserID: 3, "search.action=api_keys.refused": 1,
		"search.action=notifications.outbox_read&search.actor=" + me: 1,
	} {
		if n := admin.Total(t, "/v1/audit?"+query); n < want {
			t.Errorf("%s finds %d entries, want at least %d", query, n, want)
		}
	}
	if n := admin.Total(t, "/v1/audit?search.request_id=a*forges*"); n != 0 {
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
			p := systemtest.Start(t, filepath.Join(t.TempDir(), "data"), args...)
			p.Keyed().Do(t, "POST", "/v1/notifications/trigger", `{}`, 405) // not 404: the path matches that of a notification
		})
	}
	p := systemtest.Start(t, filepath.Join(t.TempDir(), "data"), "--server.base_url", "https://bank.example", "--notifications.trigger.enabled=true")
	p.Keyed().Do(t, "POST", "/v1/notifications/trigger", `{}`, 200)
}

// The test guesses keys until the network is throttled. The server must then reject the right key, too. Requests with valid keys do not
// count for the network.
func TestHostile_GuessingKeysIsThrottled(t *testing.T) {
	const perMinute = 3 // few, so that guesses come faster than the server allows further ones, on a slow machine, too
	p := systemtest.StartWith(t, systemtest.SecretsEnv, "--data.dir", filepath.Join(t.TempDir(), "data"), fmt.Sprintf("--rate_limits.private_per_minute=%d", perMinute))
	right, wrong := p.Keyed(), p.Client("X-API-Key", "a-key-that-nobody-has-made")
	began := time.Now()
	for range perMinute - 1 {
		right.Do(t, "GET", "/v1/public-endpoint", "", 200)
	}
	allowed, throttled := 0, false
	testenv.Wait(t, "the right key to be throttled with the wrong one", func() bool {
		a, err := wrong.Try("GET", "/v1/public-endpoint", "")
		if err != nil {
			t.Fatal(err)
		}
		if a.Status == http.StatusTooManyRequests {
			throttled = true
			got, err := right.Try("GET", "/v1/public-endpoint", "")
			return err == nil && got.Status == http.StatusTooManyRequests
		}
		if a.Status != http.StatusUnauthorized {
			t.Fatalf("got %d %s", a.Status, a.Body)
		}
		if !throttled {
			allowed++
		}
		return false
	})
	if most := perMinute + int(time.Since(began)/(time.Minute/perMinute)); allowed < perMinute || allowed > most {
		t.Errorf("%d guesses were allowed, want at least %d and at most %d in this time", allowed, perMinute, most)
	}
}

// The test disables a user with an open stream while frames are being written.
func TestHostile_ARevokedStreamReceivesNothing(t *testing.T) {
	p := systemtest.Start(t, filepath.Join(t.TempDir(), "data"))
	admin := p.Admin()
	keyed := p.Keyed()
	for round := range 10 {
		login := fmt.Sprintf("anna%d@example.ch", round)
		const password = "eleven plain words nobody else would choose"
		var user struct {
			UserID string `json:"user_id"`
		}
		keyed.Do(t, "POST", "/v1/users/initiate-registration", fmt.Sprintf(`{"credential_type":"username","credential_value":%q,
			"password":%q,"terms_accepted":true,"privacy_policy_accepted":true}`, strings.NewReplacer("@", "_", ".", "_").Replace(login), password), 201).Decode(t, &user)
		admin.Do(t, "PATCH", "/v1/users/"+user.UserID, `{"status":"active"}`, 200)
		admin.Do(t, "PUT", "/v1/users/"+user.UserID+"/roles", `{"roles":["Advisor"]}`, 200)
		anna := p.SignIn(user.UserID, password)
		var stream systemtest.StreamReader
		ended := stream.Follow(t, anna)
		trigger := func() string {
			var created struct {
				ID string `json:"notification_id"`
			}
			keyed.Do(t, "POST", "/v1/notifications/trigger", `{"event":"test","user_ids":["`+user.UserID+`"]}`, 200).Decode(t, &created)
			return created.ID
		}
		for range 20 {
			trigger()
		}
		admin.Do(t, "PATCH", "/v1/users/"+user.UserID, `{"status":"disabled"}`, 200)
		for range 5 {
			trigger()
		}
		testenv.Wait(t, "the stream to end", func() bool {
			select {
			case <-ended:
				return true
			default:
				return false
			}
		})
		if n := len(stream.Seen()); n > 20 {
			t.Fatalf("round %d: received %d frames, want at most 20", round, n)
		}
	}
}

// The API reports a printed password only to its owner, and until it is changed.
func TestHostile_APrintedPasswordIsReportedToItsOwnerOnly(t *testing.T) {
	p := systemtest.StartWith(t, nil, "--data.dir", filepath.Join(t.TempDir(), "data"), "--rate_limits.enabled=false")
	shown := p.Stdout.String()
	password := systemtest.WordAfter(shown, "password")
	admin := p.SignIn(systemtest.WordAfter(shown, "administrator"), password)
	me := admin.Do(t, "GET", "/v1/users/me", "", 200)
	var user struct {
		ID              string
		PasswordPrinted bool `json:"password_printed"`
	}
	if me.Decode(t, &user); !user.PasswordPrinted {
		t.Errorf("got %s", me.Body)
	}
	for _, path := range []string{"/v1/users/" + user.ID, "/v1/users"} {
		if a := admin.Do(t, "GET", path, "", 200); strings.Contains(a.Body, "password_printed") {
			t.Errorf("%s shows the flag: %s", path, a.Body)
		}
	}
	body, err := json.Marshal(map[string]string{"old_password": password, "password": "twelve plain words nobody has printed"})
	if err != nil {
		t.Fatal(err)
	}
	admin.Do(t, "PUT", "/v1/users/"+user.ID+"/password", string(body), 200)
	if a := admin.Do(t, "GET", "/v1/users/me", "", 200); strings.Contains(a.Body, "password_printed") || a.Header.Get("ETag") == "" {
		t.Errorf("after the change: %s", a.Body)
	}
	given := systemtest.Start(t, filepath.Join(t.TempDir(), "data")).Admin()
	if a := given.Do(t, "GET", "/v1/users/me", "", 200); strings.Contains(a.Body, "password_printed") {
		t.Errorf("a password from the environment: %s", a.Body)
	}
}
