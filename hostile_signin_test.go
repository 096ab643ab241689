package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kontor/store/storetest"
)

const customerPassword = "eight quiet ducks cross lakes"

// account is a customer of the test.
type account struct {
	id, email, credential, deviceToken string
	session                            *client
}

// object returns a JSON object of alternating names and values.
func object(pairs ...any) string {
	members := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		members[pairs[i].(string)] = pairs[i+1]
	}
	encoded, err := json.Marshal(members)
	if err != nil {
		panic(err) // a mistake in the test
	}
	return string(encoded)
}

func registrationOf(kind, value, password string) string {
	return object("credential_type", kind, "credential_value", value, "password", password, "terms_accepted", true, "privacy_policy_accepted", true)
}

func credentialOf(kind, value string) string {
	return object("credential_type", kind, "credential_value", value)
}

// from returns a client on another network, behind the simulated proxy.
func (c *client) from(address string) *client { return c.with("X-Forwarded-For", address) }

// keyed returns a client with the API key.
func (p *process) keyed() *client { return p.client("X-API-Key", apiKey) }

var hostileCode = regexp.MustCompile(`\b\d{6}\b`)

// messages returns the texts that were sent to an address, newest first.
func messages(t *testing.T, admin *client, to string) (texts []string) {
	t.Helper()
	var sent struct {
		Data []struct{ Subject, Text string }
	}
	admin.do(t, "GET", "/v1/notifications/deliveries?limit=100&sort=-created_at&search.to="+url.QueryEscape(to), "", 200).into(t, &sent)
	for _, d := range sent.Data {
		texts = append(texts, d.Subject+"\n"+d.Text)
	}
	return texts
}

// code returns the code that was last sent to an address.
func code(t *testing.T, admin *client, to string) string {
	t.Helper()
	for _, text := range messages(t, admin, to) {
		if found := hostileCode.FindString(text); found != "" {
			return found
		}
	}
	t.Fatalf("no code was sent to %s", to)
	return ""
}

// customer registers a user, validates the address and signs in from a network.
func (p *process) customer(t *testing.T, admin *client, email, network string) account {
	t.Helper()
	var made struct {
		UserID      string `json:"user_id"`
		AccessToken string `json:"access_token"`
		Credential  struct{ ID string }
	}
	p.keyed().do(t, "POST", "/v1/users/initiate-registration", registrationOf("email", email, customerPassword), 201).into(t, &made)
	a := account{id: made.UserID, email: email, credential: made.Credential.ID}
	p.client("Authorization", "Bearer "+made.AccessToken).do(t, "PUT", "/v1/users/"+a.id+"/credentials/"+a.credential+"/validate",
		object("otp", code(t, admin, email)), 200)
	var tokens struct {
		AccessToken string `json:"access_token"`
		DeviceToken string `json:"device_token"`
	}
	p.client().from(network).do(t, "POST", "/authenticate", object("user_id", email, "password", customerPassword), 200).into(t, &tokens)
	a.session, a.deviceToken = p.client("Authorization", "Bearer "+tokens.AccessToken), tokens.DeviceToken
	return a
}

func startHostile(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	return start(t, dir, append([]string{"--server.trusted_proxies=127.0.0.0/8"}, args...)...)
}

// at returns the client for another process on the same data.
func (c *client) at(p *process) *client {
	next := *c
	next.url = p.url
	return &next
}

func TestHostile_SignIn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := startHostile(t, dir)
	admin := p.admin()
	anna := p.customer(t, admin, "anna.keller@example.ch", "192.0.2.1")
	beat := p.customer(t, admin, "beat@example.ch", "192.0.2.2")
	own := "/v1/users/" + anna.id
	var claim struct{ ID string }
	anna.session.do(t, "POST", own+"/credentials", credentialOf("email", "claimed@example.ch"), 201).into(t, &claim)
	claimCode := code(t, admin, "claimed@example.ch")

	// Ten minutes later.
	if status := p.stop(); status != 0 {
		t.Fatalf("the server ended with %d", status)
	}
	storetest.Tamper(t, filepath.Join(dir, "kontor.db"), `UPDATE sessions SET authenticated_at = authenticated_at - 600000`)
	p = startHostile(t, dir)
	stolen, stolenAdmin, key, nobody := anna.session.at(p), admin.at(p), p.keyed(), p.client()
	const stale = "auth_m.insufficient_user_authentication"
	megabyte := strings.Repeat("x", 1<<20-200)
	repel(t, []attack{
		{name: "a stolen token adds an e-mail address", by: stolen, method: "POST", path: own + "/credentials", body: credentialOf("email", "thief@example.ch"), status: 401, code: stale},
		{name: "a stolen token adds a phone number", by: stolen, method: "POST", path: own + "/credentials", body: credentialOf("phone", "+41791234567"), status: 401, code: stale},
		{name: "a stolen token adds a user name", by: stolen, method: "POST", path: own + "/credentials", body: credentialOf("username", "thief"), status: 401, code: stale},
		{name: "a stolen token brings a password member that nobody reads", by: stolen, method: "POST", path: own + "/credentials", body: object("credential_type", "username", "credential_value", "thief", "current_password", "guess"), status: 401, code: stale},
		{name: "a stolen token validates with the right code", by: stolen, method: "PUT", path: own + "/credentials/" + claim.ID + "/validate", body: object("otp", claimCode), status: 401, code: stale},
		{name: "a stolen token deletes the address", by: stolen, method: "DELETE", path: "/v1/users/credentials/" + anna.credential, status: 401, code: stale},
		{name: "a stolen token deletes a claim", by: stolen, method: "DELETE", path: "/v1/users/credentials/" + claim.ID, status: 401, code: stale},
		{name: "a stolen token guesses the password", by: stolen, method: "POST", path: own + "/reauthenticate", body: object("password", "guess"), status: 400, code: "common.invalid_input"},
		{name: "a stolen token shows no password", by: stolen, method: "POST", path: own + "/reauthenticate", body: "{}", status: 400, code: "common.invalid_input"},
		{name: "a stolen token shows a password of a megabyte", by: stolen, method: "POST", path: own + "/reauthenticate", body: object("password", megabyte), status: 400, code: "common.invalid_input"},
		{name: "a session is made fresh with the password of another user", by: stolen, method: "POST", path: "/v1/users/" + beat.id + "/reauthenticate", body: object("password", customerPassword), status: 403, code: "common.rbac_no_rec_access"},
		{name: "a stolen token replaces the password without the old one", by: stolen, method: "PUT", path: own + "/password", body: object("password", "nine loud geese swim home"), status: 400, code: "common.invalid_input"},
		{name: "a stolen token replaces the password with a wrong old one", by: stolen, method: "PUT", path: own + "/password", body: object("old_password", "guess", "password", "nine loud geese swim home"), status: 400, code: "common.invalid_input"},
		{name: "a stolen token shows an old password of a megabyte", by: stolen, method: "PUT", path: own + "/password", body: object("old_password", megabyte, "password", "nine loud geese swim home"), status: 400, code: "common.invalid_input"},
		{name: "a stolen token of an administrator sets a password", by: stolenAdmin, method: "PUT", path: own + "/password", body: object("password", "nine loud geese swim home"), status: 401, code: stale},
		{name: "a stolen token of an administrator gives roles", by: stolenAdmin, method: "PUT", path: own + "/roles", body: `{"roles": ["Administrator"]}`, status: 401, code: stale},
		{name: "a stolen token of an administrator adds a user name", by: stolenAdmin, method: "POST", path: own + "/credentials", body: credentialOf("username", "thief"), status: 401, code: stale},
		{name: "a stolen token of an administrator deletes an address", by: stolenAdmin, method: "DELETE", path: "/v1/users/credentials/" + anna.credential, status: 401, code: stale},

		{name: "a password of the product's name, a year and signs", by: key, method: "POST", path: "/v1/users/initiate-registration", body: registrationOf("email", "c@example.ch", "Kontor2026!!"), status: 400, code: "common.invalid_input", contains: []string{`"password"`}},
		{name: "a password of the product's name in leetspeak", by: key, method: "POST", path: "/v1/users/initiate-registration", body: registrationOf("email", "c@example.ch", "K0nt0r-2026!"), status: 400, contains: []string{`"password"`}},
		{name: "a password of a common word, a year and signs", by: key, method: "POST", path: "/v1/users/initiate-registration", body: registrationOf("email", "c@example.ch", "Password2026!!"), status: 400, contains: []string{`"password"`}},
		{name: "a password of the name and a year", by: key, method: "POST", path: "/v1/users/initiate-registration", body: registrationOf("email", "carla.meier@example.ch", "Meier-Carla-1990"), status: 400, contains: []string{`"password"`}},
		{name: "a password of the domain and a year", by: key, method: "POST", path: "/v1/users/initiate-registration", body: registrationOf("email", "c@helvetica.example", "Helvetica2026!"), status: 400, contains: []string{`"password"`}},
		{name: "a registration with a password of a megabyte", by: key, method: "POST", path: "/v1/users/initiate-registration", body: registrationOf("email", "c@example.ch", megabyte), status: 400, contains: []string{`"password"`}},
		{name: "a recovery with a password of a megabyte", by: key, method: "POST", path: "/v1/users/complete-recovery", body: object("credential_value", anna.email, "otp", "123456", "password", megabyte), status: 400, contains: []string{`"password"`}},
		{name: "a sign-in with a password of a megabyte", by: nobody, method: "POST", path: "/authenticate", body: object("user_id", beat.email, "password", megabyte), status: 401, code: "auth_m.invalid_credentials"},
		{name: "a sign-in with a password of a megabyte for nobody", by: nobody, method: "POST", path: "/authenticate", body: object("user_id", "nobody@example.ch", "password", megabyte), status: 401, code: "auth_m.invalid_credentials"},

		{name: "an address in fullwidth letters", by: key, method: "POST", path: "/v1/users/initiate-registration", body: registrationOf("email", "ａｎｎａ.keller@example.ch", customerPassword), status: 409, code: "users.credential_exists"},
		{name: "an address with a Cyrillic letter", by: key, method: "POST", path: "/v1/users/initiate-registration", body: registrationOf("email", "аnna.keller@example.ch", customerPassword), status: 409, code: "users.credential_exists"},
		{name: "an address with a Greek letter", by: key, method: "POST", path: "/v1/users/initiate-registration", body: registrationOf("email", "αnna.keller@example.ch", customerPassword), status: 409, code: "users.credential_exists"},
		{name: "an address with an invisible mark", by: key, method: "POST", path: "/v1/users/initiate-registration", body: registrationOf("email", "anna\u034f.keller@example.ch", customerPassword), status: 409, code: "users.credential_exists"},
		{name: "a fullwidth domain", by: key, method: "POST", path: "/v1/users/initiate-registration", body: registrationOf("email", "anna.keller@ｅxample.ch", customerPassword), status: 409, code: "users.credential_exists"},
		{name: "a domain with a Cyrillic letter", by: key, method: "POST", path: "/v1/users/initiate-registration", body: registrationOf("email", "anna.keller@exаmple.ch", customerPassword), status: 409, code: "users.credential_exists"},

		{name: "a device token of nonsense", by: nobody.with("X-Device-Token", "...."), method: "POST", path: "/authenticate", body: object("user_id", beat.email, "password", "guess"), status: 401, code: "auth_m.invalid_credentials"},
		{name: "a device token without end", by: nobody.with("X-Device-Token", strings.Repeat("a.", 2000)), method: "POST", path: "/authenticate", body: object("user_id", beat.email, "password", "guess"), status: 401, code: "auth_m.invalid_credentials"},
	})
	var own2 struct{ Total int }
	stolen.do(t, "GET", own+"/credentials", "", 200).into(t, &own2)
	if own2.Total != 2 {
		t.Errorf("%d credentials after the attacks, want the 2 from before", own2.Total)
	}
}

// TestHostile_ARefreshDoesNotReauthenticate checks that only the password re-authenticates a session.
func TestHostile_ARefreshDoesNotReauthenticate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := startHostile(t, dir)
	admin := p.admin()
	anna := p.customer(t, admin, "anna@example.ch", "192.0.2.1")
	var tokens struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
	}
	p.client().do(t, "POST", "/authenticate", object("user_id", anna.email, "password", customerPassword), 200).into(t, &tokens)
	p.stop()
	storetest.Tamper(t, filepath.Join(dir, "kontor.db"), `UPDATE sessions SET authenticated_at = authenticated_at - 600000`)
	p = startHostile(t, dir)
	p.client().do(t, "POST", "/v1/token/refresh", object("refresh_token", tokens.Refresh), 200).into(t, &tokens)
	session := p.client("Authorization", "Bearer "+tokens.Access)
	refused := session.do(t, "POST", "/v1/users/"+anna.id+"/credentials", credentialOf("username", "anna"), 401)
	if got := refused.header.Get("WWW-Authenticate"); got != `Bearer realm="kontor", error="insufficient_user_authentication", max_age="600"` {
		t.Errorf("WWW-Authenticate %q", got)
	}
	session.do(t, "GET", "/v1/users/me", "", 200) // the session itself is valid
	session.do(t, "POST", "/v1/users/"+anna.id+"/reauthenticate", object("password", customerPassword), 200)
	session.do(t, "POST", "/v1/users/"+anna.id+"/credentials", credentialOf("username", "anna"), 201)
}

// TestHostile_AStolenFreshTokenDoesNotTakeTheAccount uses a token that was stolen right after the sign-in. The attacker can add
// an address, but cannot take over the account with it.
func TestHostile_AStolenFreshTokenDoesNotTakeTheAccount(t *testing.T) {
	p := startHostile(t, filepath.Join(t.TempDir(), "data"))
	admin := p.admin()
	anna := p.customer(t, admin, "anna@example.ch", "192.0.2.1")
	var added struct{ ID string }
	anna.session.do(t, "POST", "/v1/users/"+anna.id+"/credentials", credentialOf("email", "thief@example.ch"), 201).into(t, &added)
	anna.session.do(t, "PUT", "/v1/users/"+anna.id+"/credentials/"+added.ID+"/validate", object("otp", code(t, admin, "thief@example.ch")), 200)

	before := len(messages(t, admin, "thief@example.ch"))
	p.keyed().do(t, "POST", "/v1/users/initiate-recovery", object("credential_value", "thief@example.ch"), 200)
	if after := len(messages(t, admin, "thief@example.ch")); after != before {
		t.Error("the new address got a code for a new password")
	}
	refused := anna.session.do(t, "DELETE", "/v1/users/credentials/"+anna.credential, "", 409)
	if refused.code() != "users.credential_too_new" {
		t.Errorf("got %s", refused.body)
	}
	sent := messages(t, admin, anna.email)
	if !strings.Contains(sent[0], "t…@example.ch") || strings.Contains(sent[0], "thief") {
		t.Errorf("the old address got %q", sent[0])
	}
	// The user recovers the account, which removes the attacker's address.
	p.keyed().do(t, "POST", "/v1/users/initiate-recovery", object("credential_value", anna.email), 200)
	p.keyed().do(t, "POST", "/v1/users/complete-recovery", object("credential_value", anna.email, "otp", code(t, admin, anna.email), "password", "nine loud geese swim home"), 200)
	anna.session.do(t, "GET", "/v1/users/me", "", 401)
	p.client().do(t, "POST", "/authenticate", object("user_id", "thief@example.ch", "password", "nine loud geese swim home"), 401)
	p.client().do(t, "POST", "/authenticate", object("user_id", anna.email, "password", "nine loud geese swim home"), 200)
}

// TestHostile_GuessingDoesNotLockOutTheUser guesses from one /48 and then from many. Known networks and devices can still
// sign in.
func TestHostile_GuessingDoesNotLockOutTheUser(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := startHostile(t, dir)
	admin := p.admin()
	anna := p.customer(t, admin, "anna@example.ch", "2001:db8:1:1::7")
	guess, right := object("user_id", anna.email, "password", "guess"), object("user_id", anna.email, "password", customerPassword)
	looked := 0
	for i := range 400 {
		a, err := p.client().from(fmt.Sprintf("2001:db8:77:%x::1", i)).try("POST", "/authenticate", guess)
		if err != nil {
			t.Fatal(err)
		}
		if a.status == 401 {
			looked++
		}
	}
	if looked > 20+2 {
		t.Errorf("%d passwords from a /48 were checked", looked)
	}
	for i := range 200 {
		if _, err := p.client().from(fmt.Sprintf("2001:db8:%x::1", 0x1000+i)).try("POST", "/authenticate", guess); err != nil {
			t.Fatal(err)
		}
	}
	p.stop()
	p = startHostile(t, dir) // counts, known networks and devices survive a restart
	if a := p.client().from("198.51.100.1").do(t, "POST", "/authenticate", right, 429); a.header.Get("Retry-After") == "" {
		t.Error("429 without Retry-After")
	}
	p.client().from("198.51.100.1").with("X-Device-Token", anna.deviceToken).do(t, "POST", "/authenticate", right, 200)
	p.client().from("2001:db8:1:1::8").do(t, "POST", "/authenticate", right, 200)
	// Guessing from the known network is bounded, too. All sign-in names of the user share one budget.
	names := []string{anna.email, anna.id, strings.ToUpper(anna.email), "аnna@example.ch"}
	looked = 0
	for i := range 40 {
		a, err := p.client().from("2001:db8:1:1::9").try("POST", "/authenticate", object("user_id", names[i%len(names)], "password", "guess"))
		if err != nil {
			t.Fatal(err)
		}
		if a.status == 401 {
			looked++
		}
	}
	if looked > 5+2 {
		t.Errorf("%d passwords from a known network were checked", looked)
	}
}

// TestHostile_AddingAnAddressRevealsNothing checks that the response does not reveal whether an address is taken. Its owner
// gets a message.
func TestHostile_AddingAnAddressRevealsNothing(t *testing.T) {
	p := startHostile(t, filepath.Join(t.TempDir(), "data"))
	admin := p.admin()
	anna, thief := p.customer(t, admin, "anna@example.ch", "192.0.2.1"), p.customer(t, admin, "thief@example.ch", "192.0.2.2")
	var shapes []string
	for _, address := range []string{anna.email, "free@example.ch"} {
		var made struct {
			ID        string
			Value     string
			CreatedAt string `json:"created_at"`
		}
		a := thief.session.do(t, "POST", "/v1/users/"+thief.id+"/credentials", credentialOf("email", address), 201)
		a.into(t, &made)
		shape := strings.NewReplacer(made.ID, "id", made.Value, "value", made.CreatedAt, "time").Replace(a.body)
		wrong := "000000"
		if address != anna.email && code(t, admin, address) == wrong {
			wrong = "000001"
		}
		b := thief.session.do(t, "PUT", "/v1/users/"+thief.id+"/credentials/"+made.ID+"/validate", object("otp", wrong), 400)
		shapes = append(shapes, shape+b.code())
	}
	if shapes[0] != shapes[1] {
		t.Errorf("a taken address is answered with %s, a free one with %s", shapes[0], shapes[1])
	}
	if sent := messages(t, admin, anna.email)[0]; hostileCode.MatchString(sent) || !strings.Contains(sent, "nothing has changed") {
		t.Errorf("the owner got %q", sent)
	}
}

// TestHostile_MessagesAndProbesAreLimited checks the limits of messages and registrations. Counts survive a restart.
func TestHostile_MessagesAndProbesAreLimited(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	limited := func() *process {
		return startWith(t, givenSecrets, "--data.dir", dir, "--server.trusted_proxies=127.0.0.0/8", "--rate_limits.public_per_minute=100000", "--rate_limits.codes_per_hour=20")
	}
	p := limited()
	admin := p.admin()
	thief := p.customer(t, admin, "thief@example.ch", "192.0.2.2")
	sent := 0
	for i := range 120 {
		a, err := thief.session.from("192.0.2.9").try("POST", "/v1/users/"+thief.id+"/credentials", credentialOf("phone", fmt.Sprintf("+4179%07d", 5550000+i)))
		if err != nil {
			t.Fatal(err)
		}
		if a.status != 201 {
			continue
		}
		sent++
		var made struct{ ID string }
		a.into(t, &made)
		thief.session.do(t, "DELETE", "/v1/users/credentials/"+made.ID, "", 200)
	}
	if sent != 10 {
		t.Errorf("%d messages went to other addresses, want 10", sent)
	}
	count := func(what string, network func(i int) string, request func(i int) (path, body string)) map[int]int {
		seen := map[int]int{}
		for i := range 100 {
			path, body := request(i)
			a, err := p.keyed().from(network(i)).try("POST", path, body)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			seen[a.status]++
		}
		return seen
	}
	one := func(address string) func(int) string { return func(int) string { return address } }
	many := func(i int) string { return fmt.Sprintf("203.0.113.%d", i) }
	recover := func(i int) (string, string) {
		return "/v1/users/initiate-recovery", object("credential_value", fmt.Sprintf("nobody%d@example.ch", i))
	}
	probe := func(int) (string, string) {
		return "/v1/users/initiate-registration", registrationOf("email", "thief@example.ch", customerPassword)
	}
	if got := count("probes", one("192.0.2.51"), probe); got[409] != 10 || got[429] != 90 {
		t.Errorf("probes: %v", got)
	}
	if got := count("recoveries from one network", one("192.0.2.50"), recover); got[200] != 20 || got[429] != 80 {
		t.Errorf("recoveries from one network: %v", got)
	}
	// Twenty recoveries consumed part of the key's limit. The e-mail of a registration does not count.
	if got := count("recoveries from many networks", many, recover); got[200] != 40-20 {
		t.Errorf("recoveries from many networks: %v", got)
	}
	p.stop()
	p = limited()
	if got := count("after a restart", many, recover); got[200] != 0 {
		t.Errorf("recoveries after a restart: %v", got)
	}
}
