package hostile_test

import (
	"path/filepath"
	"strings"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store/storetest"
)

// startBehindProxy runs a server whose proxy the test acts as.
func startBehindProxy(t *testing.T, dir string, args ...string) *systemtest.Process {
	t.Helper()
	return systemtest.Start(t, dir, append([]string{"--server.trusted_proxies=127.0.0.0/8"}, args...)...)
}

func TestHostile_SignIn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := startBehindProxy(t, dir)
	admin := p.Admin()
	anna := p.Customer(admin, "anna.keller@example.ch", "192.0.2.1")
	beat := p.Customer(admin, "beat@example.ch", "192.0.2.2")
	own := "/v1/users/" + anna.ID
	var claim struct{ ID string }
	anna.Do(t, "POST", own+"/credentials", systemtest.CredentialOf("email", "claimed@example.ch"), 201).Decode(t, &claim)
	claimCode := systemtest.SentCode(t, admin, "claimed@example.ch")

	// Move the sign-ins ten minutes into the past.
	if code := p.Stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	storetest.Tamper(t, filepath.Join(dir, "kontor.db"), `UPDATE sessions SET authenticated_at = authenticated_at - 600000`)
	p = startBehindProxy(t, dir)
	stolen, stolenAdmin, key, anonymous := anna.At(p), admin.At(p), p.Keyed(), p.Client()
	const stale = "auth_m.insufficient_user_authentication"
	megabyte := strings.Repeat("x", 1<<20-200)
	systemtest.RunAttacks(t, []systemtest.Attack{
		{Name: "a stolen token adds an e-mail address", By: stolen, Method: "POST", Path: own + "/credentials", Body: systemtest.CredentialOf("email", "thief@example.ch"), Status: 401, Code: stale},
		{Name: "a stolen token adds a phone number", By: stolen, Method: "POST", Path: own + "/credentials", Body: systemtest.CredentialOf("phone", "+41791234567"), Status: 401, Code: stale},
		{Name: "a stolen token adds a user name", By: stolen, Method: "POST", Path: own + "/credentials", Body: systemtest.CredentialOf("username", "thief"), Status: 401, Code: stale},
		{Name: "a stolen token sends an unknown field with a password", By: stolen, Method: "POST", Path: own + "/credentials", Body: systemtest.Object("credential_type", "username", "credential_value", "thief", "current_password", "guess"), Status: 401, Code: stale},
		{Name: "a stolen token validates with the right code", By: stolen, Method: "PUT", Path: own + "/credentials/" + claim.ID + "/validate", Body: systemtest.Object("otp", claimCode), Status: 401, Code: stale},
		{Name: "a stolen token deletes the address", By: stolen, Method: "DELETE", Path: "/v1/users/credentials/" + anna.Credential, Status: 401, Code: stale},
		{Name: "a stolen token deletes a claim", By: stolen, Method: "DELETE", Path: "/v1/users/credentials/" + claim.ID, Status: 401, Code: stale},
		{Name: "a stolen token guesses the password", By: stolen, Method: "POST", Path: own + "/reauthenticate", Body: systemtest.Object("password", "guess"), Status: 400, Code: "common.invalid_input"},
		{Name: "a stolen token sends no password", By: stolen, Method: "POST", Path: own + "/reauthenticate", Body: "{}", Status: 400, Code: "common.invalid_input"},
		{Name: "a stolen token sends a password of a megabyte", By: stolen, Method: "POST", Path: own + "/reauthenticate", Body: systemtest.Object("password", megabyte), Status: 400, Code: "common.invalid_input"},
		{Name: "a stolen token reauthenticates with the password of another user", By: stolen, Method: "POST", Path: "/v1/users/" + beat.ID + "/reauthenticate", Body: systemtest.Object("password", systemtest.CustomerPassword), Status: 403, Code: "common.rbac_no_rec_access"},
		{Name: "a stolen token replaces the password without the old one", By: stolen, Method: "PUT", Path: own + "/password", Body: systemtest.Object("password", "nine loud geese swim home"), Status: 400, Code: "common.invalid_input"},
		{Name: "a stolen token replaces the password with a wrong old one", By: stolen, Method: "PUT", Path: own + "/password", Body: systemtest.Object("old_password", "guess", "password", "nine loud geese swim home"), Status: 400, Code: "common.invalid_input"},
		{Name: "a stolen token sends an old password of a megabyte", By: stolen, Method: "PUT", Path: own + "/password", Body: systemtest.Object("old_password", megabyte, "password", "nine loud geese swim home"), Status: 400, Code: "common.invalid_input"},
		{Name: "a stolen token of an administrator sets a password", By: stolenAdmin, Method: "PUT", Path: own + "/password", Body: systemtest.Object("password", "nine loud geese swim home"), Status: 401, Code: stale},
		{Name: "a stolen token of an administrator assigns roles", By: stolenAdmin, Method: "PUT", Path: own + "/roles", Body: `{"roles": ["Administrator"]}`, Status: 401, Code: stale},
		{Name: "a stolen token of an administrator adds a user name", By: stolenAdmin, Method: "POST", Path: own + "/credentials", Body: systemtest.CredentialOf("username", "thief"), Status: 401, Code: stale},
		{Name: "a stolen token of an administrator deletes an address", By: stolenAdmin, Method: "DELETE", Path: "/v1/users/credentials/" + anna.Credential, Status: 401, Code: stale},

		{Name: "a password of the product's name, a year and signs", By: key, Method: "POST", Path: "/v1/users/initiate-registration", Body: systemtest.RegistrationOf("email", "c@example.ch", "Kontor2026!!"), Status: 400, Code: "common.invalid_input", Contains: []string{`"password"`}},
		{Name: "a password of the product's name in leetspeak", By: key, Method: "POST", Path: "/v1/users/initiate-registration", Body: systemtest.RegistrationOf("email", "c@example.ch", "K0nt0r-2026!"), Status: 400, Contains: []string{`"password"`}},
		{Name: "a password of a common word, a year and signs", By: key, Method: "POST", Path: "/v1/users/initiate-registration", Body: systemtest.RegistrationOf("email", "c@example.ch", "Password2026!!"), Status: 400, Contains: []string{`"password"`}},
		{Name: "a password of the name and a year", By: key, Method: "POST", Path: "/v1/users/initiate-registration", Body: systemtest.RegistrationOf("email", "carla.meier@example.ch", "Meier-Carla-1990"), Status: 400, Contains: []string{`"password"`}},
		{Name: "a password of the domain and a year", By: key, Method: "POST", Path: "/v1/users/initiate-registration", Body: systemtest.RegistrationOf("email", "c@helvetica.example", "Helvetica2026!"), Status: 400, Contains: []string{`"password"`}},
		{Name: "a registration with a password of a megabyte", By: key, Method: "POST", Path: "/v1/users/initiate-registration", Body: systemtest.RegistrationOf("email", "c@example.ch", megabyte), Status: 400, Contains: []string{`"password"`}},
		{Name: "a recovery with a password of a megabyte", By: key, Method: "POST", Path: "/v1/users/complete-recovery", Body: systemtest.Object("credential_value", anna.Email, "otp", "123456", "password", megabyte), Status: 400, Contains: []string{`"password"`}},
		{Name: "a sign-in with a password of a megabyte", By: anonymous, Method: "POST", Path: "/authenticate", Body: systemtest.Object("user_id", beat.Email, "password", megabyte), Status: 401, Code: "auth_m.invalid_credentials"},
		{Name: "a sign-in of an unknown user with a password of a megabyte", By: anonymous, Method: "POST", Path: "/authenticate", Body: systemtest.Object("user_id", "nobody@example.ch", "password", megabyte), Status: 401, Code: "auth_m.invalid_credentials"},

		{Name: "an address in fullwidth letters", By: key, Method: "POST", Path: "/v1/users/initiate-registration", Body: systemtest.RegistrationOf("email", "ａｎｎａ.keller@example.ch", systemtest.CustomerPassword), Status: 409, Code: "users.credential_exists"},
		{Name: "an address with a Cyrillic letter", By: key, Method: "POST", Path: "/v1/users/initiate-registration", Body: systemtest.RegistrationOf("email", "аnna.keller@example.ch", systemtest.CustomerPassword), Status: 409, Code: "users.credential_exists"},
		{Name: "an address with a Greek letter", By: key, Method: "POST", Path: "/v1/users/initiate-registration", Body: systemtest.RegistrationOf("email", "αnna.keller@example.ch", systemtest.CustomerPassword), Status: 409, Code: "users.credential_exists"},
		{Name: "an address with an invisible mark", By: key, Method: "POST", Path: "/v1/users/initiate-registration", Body: systemtest.RegistrationOf("email", "anna\u034f.keller@example.ch", systemtest.CustomerPassword), Status: 409, Code: "users.credential_exists"},
		{Name: "a fullwidth domain", By: key, Method: "POST", Path: "/v1/users/initiate-registration", Body: systemtest.RegistrationOf("email", "anna.keller@ｅxample.ch", systemtest.CustomerPassword), Status: 409, Code: "users.credential_exists"},
		{Name: "a domain with a Cyrillic letter", By: key, Method: "POST", Path: "/v1/users/initiate-registration", Body: systemtest.RegistrationOf("email", "anna.keller@exаmple.ch", systemtest.CustomerPassword), Status: 409, Code: "users.credential_exists"},

		{Name: "a malformed device token", By: anonymous.With("X-Device-Token", "...."), Method: "POST", Path: "/authenticate", Body: systemtest.Object("user_id", beat.Email, "password", "guess"), Status: 401, Code: "auth_m.invalid_credentials"},
		{Name: "a very long device token", By: anonymous.With("X-Device-Token", strings.Repeat("a.", 2000)), Method: "POST", Path: "/authenticate", Body: systemtest.Object("user_id", beat.Email, "password", "guess"), Status: 401, Code: "auth_m.invalid_credentials"},
	})
	if n := stolen.Total(t, own+"/credentials"); n != 2 {
		t.Errorf("%d credentials after the attacks, want the 2 from before", n)
	}
}

// Refreshing a token does not count as reauthentication.
func TestHostile_ARefreshDoesNotReauthenticate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := startBehindProxy(t, dir)
	admin := p.Admin()
	anna := p.Customer(admin, "anna@example.ch", "192.0.2.1")
	var tokens struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
	}
	p.Client().Do(t, "POST", "/authenticate", systemtest.Object("user_id", anna.Email, "password", systemtest.CustomerPassword), 200).Decode(t, &tokens)
	p.Stop()
	storetest.Tamper(t, filepath.Join(dir, "kontor.db"), `UPDATE sessions SET authenticated_at = authenticated_at - 600000`)
	p = startBehindProxy(t, dir)
	p.Client().Do(t, "POST", "/v1/token/refresh", systemtest.Object("refresh_token", tokens.Refresh), 200).Decode(t, &tokens)
	session := p.Client("Authorization", "Bearer "+tokens.Access)
	rejected := session.Do(t, "POST", "/v1/users/"+anna.ID+"/credentials", systemtest.CredentialOf("username", "anna"), 401)
	if got := rejected.Header.Get("WWW-Authenticate"); got != `Bearer realm="kontor", error="insufficient_user_authentication", max_age="600"` {
		t.Errorf("WWW-Authenticate %q", got)
	}
	session.Do(t, "GET", "/v1/users/me", "", 200) // the session is valid
	session.Do(t, "POST", "/v1/users/"+anna.ID+"/reauthenticate", systemtest.Object("password", systemtest.CustomerPassword), 200)
	session.Do(t, "POST", "/v1/users/"+anna.ID+"/credentials", systemtest.CredentialOf("username", "anna"), 201)
}

// With a token that was stolen right after the sign-in, an attacker cannot add an address. With the password, they can, but cannot
// take over the account.
func TestHostile_AStolenFreshTokenDoesNotTakeOverTheAccount(t *testing.T) {
	p := startBehindProxy(t, filepath.Join(t.TempDir(), "data"))
	admin := p.Admin()
	anna := p.Customer(admin, "anna@example.ch", "192.0.2.1")
	unproven := systemtest.Object("credential_type", "email", "credential_value", "thief@example.ch")
	if refused := anna.Do(t, "POST", "/v1/users/"+anna.ID+"/credentials", unproven, 403); refused.Code() != "auth_m.proof_required" {
		t.Errorf("got %s", refused.Body)
	}
	var added struct{ ID string }
	anna.Do(t, "POST", "/v1/users/"+anna.ID+"/credentials", systemtest.CredentialOf("email", "thief@example.ch"), 201).Decode(t, &added)
	anna.Do(t, "PUT", "/v1/users/"+anna.ID+"/credentials/"+added.ID+"/validate", systemtest.Object("otp", systemtest.SentCode(t, admin, "thief@example.ch")), 200)

	before := len(systemtest.SentMessages(t, admin, "thief@example.ch"))
	p.Keyed().Do(t, "POST", "/v1/users/initiate-recovery", systemtest.Object("credential_value", "thief@example.ch"), 200)
	if after := len(systemtest.SentMessages(t, admin, "thief@example.ch")); after != before {
		t.Error("the new address received a code for a recovery")
	}
	rejected := anna.Do(t, "DELETE", "/v1/users/credentials/"+anna.Credential, "", 409)
	if rejected.Code() != "users.credential_too_new" {
		t.Errorf("got %s", rejected.Body)
	}
	if sent := systemtest.SentMessages(t, admin, anna.Email); !strings.Contains(sent[0], "t…@example.ch") || strings.Contains(sent[0], "thief") {
		t.Errorf("the old address received %q", sent[0])
	}
	// The owner recovers the account, which removes the attacker's address.
	p.Keyed().Do(t, "POST", "/v1/users/initiate-recovery", systemtest.Object("credential_value", anna.Email), 200)
	p.Keyed().Do(t, "POST", "/v1/users/complete-recovery", systemtest.Object("credential_value", anna.Email, "otp", systemtest.SentCode(t, admin, anna.Email), "password", "nine loud geese swim home"), 200)
	anna.Do(t, "GET", "/v1/users/me", "", 401)
	p.Client().Do(t, "POST", "/authenticate", systemtest.Object("user_id", "thief@example.ch", "password", "nine loud geese swim home"), 401)
	p.Client().Do(t, "POST", "/authenticate", systemtest.Object("user_id", anna.Email, "password", "nine loud geese swim home"), 200)
}

// Adding an address does not reveal whether another user has it. That user receives a message.
func TestHostile_AddingAnAddressRevealsNothing(t *testing.T) {
	p := startBehindProxy(t, filepath.Join(t.TempDir(), "data"))
	admin := p.Admin()
	anna, thief := p.Customer(admin, "anna@example.ch", "192.0.2.1"), p.Customer(admin, "thief@example.ch", "192.0.2.2")
	var shapes []string
	for _, address := range []string{anna.Email, "free@example.ch"} {
		var added struct {
			ID        string
			Value     string
			CreatedAt string `json:"created_at"`
		}
		a := thief.Do(t, "POST", "/v1/users/"+thief.ID+"/credentials", systemtest.CredentialOf("email", address), 201)
		a.Decode(t, &added)
		shape := strings.NewReplacer(added.ID, "id", added.Value, "value", added.CreatedAt, "time").Replace(a.Body)
		wrong := "000000"
		if address != anna.Email && systemtest.SentCode(t, admin, address) == wrong {
			wrong = "000001"
		}
		b := thief.Do(t, "PUT", "/v1/users/"+thief.ID+"/credentials/"+added.ID+"/validate", systemtest.Object("otp", wrong), 400)
		shapes = append(shapes, shape+b.Code())
	}
	if shapes[0] != shapes[1] {
		t.Errorf("a taken address is answered with %s, a free one with %s", shapes[0], shapes[1])
	}
	if sent := systemtest.SentMessages(t, admin, anna.Email)[0]; systemtest.OTPPattern.MatchString(sent) || !strings.Contains(sent, "nothing has changed") {
		t.Errorf("the owner received %q", sent)
	}
}
