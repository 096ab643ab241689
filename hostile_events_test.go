package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// made decodes the response to a creation.
func (c *client) made(tb testing.TB, path, body string) (id, key string) {
	tb.Helper()
	var m struct{ ID, Key string }
	c.do(tb, "POST", path, body, 201).into(tb, &m)
	return m.ID, m.Key
}

// TestHostile_KeysAndEvents abuses API keys and tries to evade the audit trail.
func TestHostile_KeysAndEvents(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "data"))
	admin, keyed, nobody := p.admin(), p.client("X-API-Key", apiKey), p.client()
	me := admin.userID(t)
	_, registration := admin.made(t, "/v1/api-keys", `{"name":"form","scopes":["users.register"]}`)
	form := p.client("X-API-Key", registration)
	revoked, old := admin.made(t, "/v1/api-keys", `{"name":"old"}`)
	admin.do(t, "DELETE", "/v1/api-keys/"+revoked, "", 200)
	var registered struct {
		AccessToken string `json:"access_token"`
		UserID      string `json:"user_id"`
	}
	form.do(t, "POST", "/v1/users/initiate-registration", `{"credential_type":"email","credential_value":"mallory@example.ch",
		"password":"ten plain words nobody else would choose","terms_accepted":true,"privacy_policy_accepted":true}`, 201).into(t, &registered)
	mallory := p.client("Authorization", "Bearer "+registered.AccessToken)
	const noAccess = "common.rbac_no_rec_access"
	repel(t, []attack{
		{name: "a key for registration triggers", by: form, method: "POST", path: "/v1/notifications/trigger", body: `{"user_ids":["` + me + `"]}`, status: 403, code: noAccess},
		{name: "a key for registration recovers", by: form, method: "POST", path: "/v1/users/initiate-recovery", body: `{"credential_value":"` + adminEmail + `"}`, status: 403, code: noAccess},
		{name: "a key for registration completes a recovery", by: form, method: "POST", path: "/v1/users/complete-recovery", body: `{}`, status: 403, code: noAccess},
		{name: "a key for registration asks whether it is good", by: form, method: "GET", path: "/v1/public-endpoint", status: 403, code: noAccess},
		{name: "a HEAD request goes around the scope", by: form, method: "HEAD", path: "/v1/public-endpoint", status: 403},
		{name: "a key makes a key", by: keyed, method: "POST", path: "/v1/api-keys", body: `{"name":"mine"}`, status: 401},
		{name: "a key reads the audit trail", by: keyed, method: "GET", path: "/v1/audit", status: 401},
		{name: "a key opens a stream", by: keyed, method: "GET", path: "/v1/notifications/sse", status: 401},
		{name: "a revoked key", by: p.client("X-API-Key", old), method: "GET", path: "/v1/public-endpoint", status: 401},
		{name: "two keys in one request", by: p.client("X-API-Key", registration+", "+apiKey), method: "GET", path: "/v1/public-endpoint", status: 401},
		{name: "key and bearer", by: admin.with("X-API-Key", apiKey), method: "GET", path: "/v1/public-endpoint", status: 400},
		{name: "a scope that is a bearer route", by: admin, method: "POST", path: "/v1/api-keys", body: `{"name":"x","scopes":["audit.list"]}`, status: 400},
		{name: "no scope at all", by: admin, method: "POST", path: "/v1/api-keys", body: `{"name":"x","scopes":[]}`, status: 400},
		{name: "all scopes beside others", by: admin, method: "POST", path: "/v1/api-keys", body: `{"name":"x","scopes":["*","users.register"]}`, status: 400},
		{name: "a scope with a comma", by: admin, method: "POST", path: "/v1/api-keys", body: `{"name":"x","scopes":["users.register,notifications.trigger"]}`, status: 400},
		{name: "a key that has expired already", by: admin, method: "POST", path: "/v1/api-keys", body: `{"name":"x","expires_at":"2001-01-01T00:00:00Z"}`, status: 400},
		{name: "an end beyond all years", by: admin, method: "POST", path: "/v1/api-keys", body: `{"name":"x","expires_at":"99999-01-01T00:00:00Z"}`, status: 400},
		{name: "a registrant reads the trail", by: mallory, method: "GET", path: "/v1/audit", status: 403, code: noAccess},
		{name: "a registrant reads the outbox", by: mallory, method: "GET", path: "/v1/notifications/deliveries", status: 403, code: noAccess},
		{name: "a registrant makes a key", by: mallory, method: "POST", path: "/v1/api-keys", body: `{"name":"x"}`, status: 403, code: noAccess},
		{name: "nobody reads the trail", by: nobody, method: "GET", path: "/v1/audit?search.kind=sign_in", status: 401},
		{name: "an entry is deleted", by: admin, method: "DELETE", path: "/v1/audit/1", status: 404},
		{name: "an entry is written", by: admin, method: "POST", path: "/v1/audit", body: `{"action":"nothing"}`, status: 405},
		{name: "SQL in a kind", by: admin, method: "GET", path: "/v1/audit?search.kind=change,x')%20OR%201=1--", status: 200, excludes: []string{`"kind":"denial"`}},
		{name: "a request id that forges a line", by: admin.with("X-Request-ID", `a"},{"kind":"x`), method: "GET", path: "/v1/audit?limit=1", status: 200},
		{name: "the trigger names the genuine event", by: keyed, method: "POST", path: "/v1/notifications/trigger", body: `{"event":"password_changed","user_ids":["` + me + `"]}`, status: 200},
	})

	// The attempts are in the trail, and no mail was sent.
	if n := admin.total(t, "/v1/notifications/deliveries?search.user_id="+me); n != 0 {
		t.Errorf("the trigger made %d deliveries", n)
	}
	marked := admin.do(t, "GET", "/v1/notifications?search.user_id="+me+"&search.event=password_changed", "", 200).body
	if !strings.Contains(marked, `"test":true`) {
		t.Errorf("the copy is not marked: %s", marked)
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

// TestHostile_NoTriggerOnPublicAddresses starts public servers without a setting for the trigger.
func TestHostile_NoTriggerOnPublicAddresses(t *testing.T) {
	for name, args := range map[string][]string{
		"a proxy in front":        {"--server.trusted_proxies", "127.0.0.1"},
		"a public address":        {"--server.base_url", "https://bank.example"},
		"switched off, old value": {"--notifications.trigger.enabled=no"},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, filepath.Join(t.TempDir(), "data"), args...)
			p.client("X-API-Key", apiKey).do(t, "POST", "/v1/notifications/trigger", `{}`, 405) // the path matches that of a notification
		})
	}
	p := start(t, filepath.Join(t.TempDir(), "data"), "--server.base_url", "https://bank.example", "--notifications.trigger.enabled=true")
	p.client("X-API-Key", apiKey).do(t, "POST", "/v1/notifications/trigger", `{}`, 200)
}

// TestHostile_ResponsesDoNotRevealGuessedKeys guesses keys until the network is throttled. Then even a correct key is
// rejected.
func TestHostile_ResponsesDoNotRevealGuessedKeys(t *testing.T) {
	p := startWith(t, givenSecrets, "--data.dir", filepath.Join(t.TempDir(), "data"), "--rate_limits.private_per_minute", "20")
	right, wrong := p.client("X-API-Key", apiKey), p.client("X-API-Key", "a-key-that-nobody-has-made")
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
		t.Errorf("%d of 25 guesses were throttled, want those beyond 20: good keys take no place of the network", throttled)
	}
	right.do(t, "GET", "/v1/public-endpoint", "", http.StatusTooManyRequests)
}

// TestHostile_ARevokedStreamReceivesNothing disables a user while a stream of that user is open and frames are sent.
func TestHostile_ARevokedStreamReceivesNothing(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "data"))
	admin := p.admin()
	keyed := p.client("X-API-Key", apiKey)
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
			var made struct {
				ID string `json:"notification_id"`
			}
			keyed.do(t, "POST", "/v1/notifications/trigger", `{"event":"test","user_ids":["`+user.UserID+`"]}`, 200).into(t, &made)
			return made.ID
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
			t.Fatalf("round %d: %d frames came, 5 of them after the user was disabled", round, n)
		}
	}
}

// TestHostile_AuditTrailIsExported exports the trail to a rotated file and to a syslog server, across a kill. It verifies
// both without the master key.
func TestHostile_AuditTrailIsExported(t *testing.T) {
	home := t.TempDir()
	dir, file := filepath.Join(home, "data"), filepath.Join(home, "audit.jsonl")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go swallow(listener)
	args := []string{"--audit.export_file", file, "--audit.syslog_url", "tcp://" + listener.Addr().String()}
	p := start(t, dir, args...)
	p.admin().do(t, "POST", "/v1/api-keys", `{"name":"one"}`, 201)
	holds := func(path string) bool { return run(t, nil, "audit", "verify", path).code == 0 }
	waitUntil(t, func() bool { return holds(file) })
	p.kill()
	if err := os.Rename(file, file+".1"); err != nil {
		t.Fatal(err)
	}
	p = start(t, dir, args...)
	nobody := p.client()
	nobody.do(t, "POST", "/authenticate", `{"user_id":"`+adminEmail+`","password":"a guess"}`, 401)
	p.admin().do(t, "POST", "/v1/api-keys", `{"name":"two"}`, 201)
	if code := p.stop(); code != 0 {
		t.Fatalf("exit code %d: %s", code, p.stderr)
	}
	key := strings.TrimSpace(succeeds(t, run(t, nil, "audit", "key", "--data.dir", dir)))
	for _, path := range []string{file + ".1", file} {
		succeeds(t, run(t, nil, "audit", "verify", path, "--key", key))
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"action":"auth.sign_in_failed"`) {
		t.Error("the failed sign-in is missing from the export")
	}
	forged := strings.Replace(string(text), `"kind":"sign_in"`, `"kind":"read"`, 1)
	if err := os.WriteFile(file, []byte(forged), 0o600); err != nil {
		t.Fatal(err)
	}
	if e := run(t, nil, "audit", "verify", file, "--key", key); e.code != 1 || !strings.Contains(e.stderr, "was changed") {
		t.Errorf("a forged export: got %+v", e)
	}
}

// swallow reads and discards all data of the connections of a listener.
func swallow(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			_, _ = bufio.NewReader(conn).WriteTo(discard{}) // until the peer closes
		}()
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// TestHostile_PrintedPasswordIsShownToItsOwnerOnly reads the flag as the user and as another administrator.
func TestHostile_PrintedPasswordIsShownToItsOwnerOnly(t *testing.T) {
	p := startWith(t, nil, "--data.dir", filepath.Join(t.TempDir(), "data"), "--rate_limits.enabled=false")
	shown := p.stdout.String()
	password := after(shown, "password")
	admin := p.signIn(after(shown, "administrator"), password)
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
		t.Errorf("a password that was given: %s", a.body)
	}
}
