package main

import (
	"path/filepath"
	"strings"
	"testing"

	"kontor/store/storetest"
)

// startBehindProxy runs a server whose proxy the test acts as.
func startBehindProxy(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	return start(t, dir, append([]string{"--server.trusted_proxies=127.0.0.0/8"}, args...)...)
}

func TestHostile_SignIn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := startBehindProxy(t, dir)
	admin := p.admin()
	anna := p.customer(admin, "anna.keller@example.ch", "192.0.2.1")
	beat := p.customer(admin, "beat@example.ch", "192.0.2.2")
	own := "/v1/users/" + anna.id
	var claim struct{ ID string }
	anna.do(t, "POST", own+"/credentials", credentialOf("email", "claimed@example.ch"), 201).into(t, &claim)
	claimCode := sentCode(t, admin, "claimed@example.ch")

	// Move the sign-ins ten minutes into the past.
	if code := p.stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	storetest.Tamper(t, filepath.Join(dir, "kontor.db"), `UPDATE sessions SET authenticated_at = authenticated_at - 600000`)
	p = startBehindProxy(t, dir)
	stolen, stolenAdmin, key, anonymous := anna.at(p), admin.at(p), p.keyed(), p.client()
	const stale = "auth_m.insufficient_user_authentication"
	megabyte := strings.Repeat("x", 1<<20-200)
	runAttacks(t, []attack{
		{name: "a stolen token adds an e-mail address", by: stolen, method: "POST", path: own + "/credentials", body: credentialOf("email", "thief@example.ch"), status: 401, code: stale},
		{name: "a stolen token adds a phone number", by: stolen, method: "POST", path: own + "/credentials", body: credentialOf("phone", "+41791234567"), status: 401, code: stale},
		{name: "a stolen token adds a user name", by: stolen, method: "POST", path: own + "/credentials", body: credentialOf("username", "thief"), status: 401, code: stale},
		{name: "a stolen token sends an unknown field with a password", by: stolen, method: "POST", path: own + "/credentials", body: object("credential_type", "username", "credential_value", "thief", "current_password", "guess"), status: 401, code: stale},
		{name: "a stolen token validates with the right code", by: stolen, method: "PUT", path: own + "/credentials/" + claim.ID + "/validate", body: object("otp", claimCode), status: 401, code: stale},
		{name: "a stolen token deletes the address", by: stolen, method: "DELETE", path: "/v1/users/credentials/" + anna.credential, status: 401, code: stale},
		{name: "a stolen token deletes a claim", by: stolen, method: "DELETE", path: "/v1/users/credentials/" + claim.ID, status: 401, code: stale},
		{name: "a stolen token guesses the password", by: stolen, method: "POST", path: own + "/reauthenticate", body: object("password", "guess"), status: 400, code: "common.invalid_input"},
		{name: "a stolen token sends no password", by: stolen, method: "POST", path: own + "/reauthenticate", body: "{}", status: 400, code: "common.invalid_input"},
		{name: "a stolen token sends a password of a megabyte", by: stolen, method: "POST", path: own + "/reauthenticate", body: object("password", megabyte), status: 400, code: "common.invalid_input"},
		{name: "a stolen token reauthenticates with the password of another user", by: stolen, method: "POST", path: "/v1/users/" + beat.id + "/reauthenticate", body: object("password", customerPassword), status: 403, code: "common.rbac_no_rec_access"},
		{name: "a stolen token replaces the password without the old one", by: stolen, method: "PUT", path: own + "/password", body: object("password", "nine loud geese swim home"), status: 400, code: "common.invalid_input"},
		{name: "a stolen token replaces the password with a wrong old one", by: stolen, method: "PUT", path: own + "/password", body: object("old_password", "guess", "password", "nine loud geese swim home"), status: 400, code: "common.invalid_input"},
		{name: "a stolen token sends an old password of a megabyte", by: stolen, method: "PUT", path: own + "/password", body: object("old_password", megabyte, "password", "nine loud geese swim home"), status: 400, code: "common.invalid_input"},
		{name: "a stolen token of an administrator sets a password", by: stolenAdmin, method: "PUT", path: own + "/password", body: object("password", "nine loud geese swim home"), status: 401, code: stale},
		{name: "a stolen token of an administrator assigns roles", by: stolenAdmin, method: "PUT", path: own + "/roles", body: `{"roles": ["Administrator"]}`, status: 401, code: stale},
		{name: "a stolen token of an administrator adds a user name", by: stolenAdmin, method: "POST", path: own + "/credentials", body: credentialOf("username", "thief"), status: 401, code: stale},
		{name: "a stolen token of an administrator deletes an address", by: stolenAdmin, method: "DELETE", path: "/v1/users/credentials/" + anna.credential, status: 401, code: stale},

		{name: "a password of the product's name, a year and signs", by: key, method: "POST", path: "/v1/users/initiate-registration", body: registrationOf("email", "c@example.ch", "Kontor2026!!"), status: 400, code: "common.invalid_input", contains: []string{`"password"`}},
		{name: "a password of the product's name in leetspeak", by: key, method: "POST", path: "/v1/users/initiate-registration", body: registrationOf("email", "c@example.ch", "K0nt0r-2026!"), status: 400, contains: []string{`"password"`}},
		{name: "a password of a common word, a year and signs", by: key, method: "POST", path: "/v1/users/initiate-registration", body: registrationOf("email", "c@example.ch", "Password2026!!"), status: 400, contains: []string{`"password"`}},
		{name: "a password of the name and a year", by: key, method: "POST", path: "/v1/users/initiate-registration", body: registrationOf("email", "carla.meier@example.ch", "Meier-Carla-1990"), status: 400, contains: []string{`"password"`}},
		{name: "a password of the domain and a year", by: key, method: "POST", path: "/v1/users/initiate-registration", body: registrationOf("email", "c@helvetica.example", "Helvetica2026!"), status: 400, contains: []string{`"password"`}},
		{name: "a registration with a password of a megabyte", by: key, method: "POST", path: "/v1/users/initiate-registration", body: registrationOf("email", "c@example.ch", megabyte), status: 400, contains: []string{`"password"`}},
		{name: "a recovery with a password of a megabyte", by: key, method: "POST", path: "/v1/users/complete-recovery", body: object("credential_value", anna.email, "otp", "123456", "password", megabyte), status: 400, contains: []string{`"password"`}},
		{name: "a sign-in with a password of a megabyte", by: anonymous, method: "POST", path: "/authenticate", body: object("user_id", beat.email, "password", megabyte), status: 401, code: "auth_m.invalid_credentials"},
		{name: "a sign-in of an unknown user with a password of a megabyte", by: anonymous, method: "POST", path: "/authenticate", body: object("user_id", "nobody@example.ch", "password", megabyte), status: 401, code: "auth_m.invalid_credentials"},

		{name: "an address in fullwidth letters", by: key, method: "POST", path: "/v1/users/initiate-registration", body: registrationOf("email", "ａｎｎａ.keller@example.ch", customerPassword), status: 409, code: "users.credential_exists"},
		{name: "an address with a Cyrillic letter", by: key, method: "POST", path: "/v1/users/initiate-registration", body: registrationOf("email", "аnna.keller@example.ch", customerPassword), status: 409, code: "users.credential_exists"},
		{name: "an address with a Greek letter", by: key, method: "POST", path: "/v1/users/initiate-registration", body: registrationOf("email", "αnna.keller@example.ch", customerPassword), status: 409, code: "users.credential_exists"},
		{name: "an address with an invisible mark", by: key, method: "POST", path: "/v1/users/initiate-registration", body: registrationOf("email", "anna\u034f.keller@example.ch", customerPassword), status: 409, code: "users.credential_exists"},
		{name: "a fullwidth domain", by: key, method: "POST", path: "/v1/users/initiate-registration", body: registrationOf("email", "anna.keller@ｅxample.ch", customerPassword), status: 409, code: "users.credential_exists"},
		{name: "a domain with a Cyrillic letter", by: key, method: "POST", path: "/v1/users/initiate-registration", body: registrationOf("email", "anna.keller@exаmple.ch", customerPassword), status: 409, code: "users.credential_exists"},

		{name: "a malformed device token", by: anonymous.with("X-Device-Token", "...."), method: "POST", path: "/authenticate", body: object("user_id", beat.email, "password", "guess"), status: 401, code: "auth_m.invalid_credentials"},
		{name: "a very long device token", by: anonymous.with("X-Device-Token", strings.Repeat("a.", 2000)), method: "POST", path: "/authenticate", body: object("user_id", beat.email, "password", "guess"), status: 401, code: "auth_m.invalid_credentials"},
	})
	if n := stolen.total(t, own+"/credentials"); n != 2 {
		t.Errorf("%d credentials after the attacks, want the 2 from before", n)
	}
}

// Refreshing a token does not count as reauthentication.
func TestHostile_ARefreshDoesNotReauthenticate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := startBehindProxy(t, dir)
	admin := p.admin()
	anna := p.customer(admin, "anna@example.ch", "192.0.2.1")
	var tokens struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
	}
	p.client().do(t, "POST", "/authenticate", object("user_id", anna.email, "password", customerPassword), 200).into(t, &tokens)
	p.stop()
	storetest.Tamper(t, filepath.Join(dir, "kontor.db"), `UPDATE sessions SET authenticated_at = authenticated_at - 600000`)
	p = startBehindProxy(t, dir)
	p.client().do(t, "POST", "/v1/token/refresh", object("refresh_token", tokens.Refresh), 200).into(t, &tokens)
	session := p.client("Authorization", "Bearer "+tokens.Access)
	rejected := session.do(t, "POST", "/v1/users/"+anna.id+"/credentials", credentialOf("username", "anna"), 401)
	if got := rejected.header.Get("WWW-Authenticate"); got != `Bearer realm="kontor", error="insufficient_user_authentication", max_age="600"` {
		t.Errorf("WWW-Authenticate %q", got)
	}
	session.do(t, "GET", "/v1/users/me", "", 200) // the session is valid
	session.do(t, "POST", "/v1/users/"+anna.id+"/reauthenticate", object("password", customerPassword), 200)
	session.do(t, "POST", "/v1/users/"+anna.id+"/credentials", credentialOf("username", "anna"), 201)
}

// With a token that was stolen right after the sign-in, an attacker can add an address, but cannot take over the account.
func TestHostile_AStolenFreshTokenDoesNotTakeOverTheAccount(t *testing.T) {
	p := startBehindProxy(t, filepath.Join(t.TempDir(), "data"))
	admin := p.admin()
	anna := p.customer(admin, "anna@example.ch", "192.0.2.1")
	var added struct{ ID string }
	anna.do(t, "POST", "/v1/users/"+anna.id+"/credentials", credentialOf("email", "thief@example.ch"), 201).into(t, &added)
	anna.do(t, "PUT", "/v1/users/"+anna.id+"/credentials/"+added.ID+"/validate", object("otp", sentCode(t, admin, "thief@example.ch")), 200)

	before := len(sentMessages(t, admin, "thief@example.ch"))
	p.keyed().do(t, "POST", "/v1/users/initiate-recovery", object("credential_value", "thief@example.ch"), 200)
	if after := len(sentMessages(t, admin, "thief@example.ch")); after != before {
		t.Error("the new address received a code for a recovery")
	}
	rejected := anna.do(t, "DELETE", "/v1/users/credentials/"+anna.credential, "", 409)
	if rejected.code() != "users.credential_too_new" {
		t.Errorf("got %s", rejected.body)
	}
	if sent := sentMessages(t, admin, anna.email); !strings.Contains(sent[0], "t…@example.ch") || strings.Contains(sent[0], "thief") {
		t.Errorf("the old address received %q", sent[0])
	}
	// The owner recovers the account, which removes the attacker's address.
	p.keyed().do(t, "POST", "/v1/users/initiate-recovery", object("credential_value", anna.email), 200)
	p.keyed().do(t, "POST", "/v1/users/complete-recovery", object("credential_value", anna.email, "otp", sentCode(t, admin, anna.email), "password", "nine loud geese swim home"), 200)
	anna.do(t, "GET", "/v1/users/me", "", 401)
	p.client().do(t, "POST", "/authenticate", object("user_id", "thief@example.ch", "password", "nine loud geese swim home"), 401)
	p.client().do(t, "POST", "/authenticate", object("user_id", anna.email, "password", "nine loud geese swim home"), 200)
}

// Adding an address does not reveal whether another user has it. That user receives a message.
func TestHostile_AddingAnAddressRevealsNothing(t *testing.T) {
	p := startBehindProxy(t, filepath.Join(t.TempDir(), "data"))
	admin := p.admin()
	anna, thief := p.customer(admin, "anna@example.ch", "192.0.2.1"), p.customer(admin, "thief@example.ch", "192.0.2.2")
	var shapes []string
	for _, address := range []string{anna.email, "free@example.ch"} {
		var added struct {
			ID        string
			Value     string
			CreatedAt string `json:"created_at"`
		}
		a := thief.do(t, "POST", "/v1/users/"+thief.id+"/credentials", credentialOf("email", address), 201)
		a.into(t, &added)
		shape := strings.NewReplacer(added.ID, "id", added.Value, "value", added.CreatedAt, "time").Replace(a.body)
		wrong := "000000"
		if address != anna.email && sentCode(t, admin, address) == wrong {
			wrong = "000001"
		}
		b := thief.do(t, "PUT", "/v1/users/"+thief.id+"/credentials/"+added.ID+"/validate", object("otp", wrong), 400)
		shapes = append(shapes, shape+b.code())
	}
	if shapes[0] != shapes[1] {
		t.Errorf("a taken address is answered with %s, a free one with %s", shapes[0], shapes[1])
	}
	if sent := sentMessages(t, admin, anna.email)[0]; otpPattern.MatchString(sent) || !strings.Contains(sent, "nothing has changed") {
		t.Errorf("the owner received %q", sent)
	}
}
