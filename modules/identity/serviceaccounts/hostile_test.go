package serviceaccounts_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"kontor/modules/identity/serviceaccounts"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

// Texts that resemble a token are refused, all with the same answer, and none of them breaks the server.
func TestHostile_Tokens(t *testing.T) {
	s := servertest.Start(t)
	accountID, k, _ := backOffice(t, s)
	other := issue(t, s, accountID, nil)
	secret := k.Text[len(k.Text)-43:]
	id := strings.ReplaceAll(k.ID, "-", "")
	for name, text := range map[string]string{
		"only the prefix":          "kontor_sa_",
		"no secret":                "kontor_sa_" + id,
		"an empty secret":          "kontor_sa_" + id + "_",
		"a short secret":           k.Text[:len(k.Text)-1],
		"a long secret":            k.Text + "A",
		"another secret":           "kontor_sa_" + id + "_" + strings.Repeat("A", 43),
		"the secret of another":    "kontor_sa_" + id + "_" + other.Text[len(other.Text)-43:],
		"the id of another":        "kontor_sa_" + strings.ReplaceAll(other.ID, "-", "") + "_" + secret,
		"an unknown id":            "kontor_sa_" + strings.ReplaceAll(store.NewID(), "-", "") + "_" + secret,
		"the id of the account":    "kontor_sa_" + strings.ReplaceAll(accountID, "-", "") + "_" + secret,
		"an id in capitals":        "kontor_sa_" + strings.ToUpper(id) + "_" + secret,
		"a prefix in capitals":     "KONTOR_SA_" + id + "_" + secret,
		"an id with hyphens":       "kontor_sa_" + k.ID + "_" + secret,
		"a nil id":                 "kontor_sa_" + strings.Repeat("0", 32) + "_" + secret,
		"an id that is no number":  "kontor_sa_" + strings.Repeat("z", 32) + "_" + secret,
		"SQL":                      "kontor_sa_" + strings.Repeat("'", 32) + "_" + secret,
		"padding":                  k.Text[:len(k.Text)-1] + "=",
		"spare bits of the secret": k.Text[:len(k.Text)-1] + next(k.Text[len(k.Text)-1]),
		"a hash":                   "kontor_sa_" + id + "_" + strings.Repeat("a", 64),
		"a long text":              "kontor_sa_" + strings.Repeat("a", 3000),
		"an API key":               "kontor_" + id + "_" + secret,
		"two tokens":               k.Text + "," + other.Text,
		"a percent sign":           "kontor_sa_" + strings.Repeat("%", 32) + "_" + secret,
		"a JWT behind the prefix":  "kontor_sa_eyJhbGciOiJub25lIn0.e30.",
	} {
		t.Run(name, func(t *testing.T) {
			s.Anonymous().With("Authorization", "Bearer "+text).Do("GET", "/v1/users/me", nil).ExpectError(t, http.StatusUnauthorized, "common.unauthorized")
		})
	}
	for name, headers := range map[string][]string{
		"as an API key":         {"X-API-Key", k.Text},
		"as Basic":              {"Authorization", "Basic " + k.Text},
		"as a Cookie":           {"Cookie", "token=" + k.Text},
		"without a scheme":      {"Authorization", k.Text},
		"in the query by habit": {"Authorization", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := s.Anonymous().With(headers...).Do("GET", "/v1/users/me", nil); got.Status != http.StatusUnauthorized {
				t.Errorf("got %d %s", got.Status, got.Body)
			}
		})
	}
	k.with(s).Do("GET", "/v1/users/me", nil).Expect(t, http.StatusOK)
	k.with(s).With("X-API-Key", servertest.APIKey).Do("GET", "/v1/users/me", nil).Expect(t, http.StatusBadRequest)
}

// next returns another character of base64url with the same significant bits at the end of 32 bytes.
func next(c byte) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(alphabet[strings.IndexByte(alphabet, c)|1])
}

// Requests for tokens and accounts that are refused, with the field that is wrong.
func TestHostile_Inputs(t *testing.T) {
	s := servertest.Start(t)
	id := account(t, s, access.Advisor)
	now := s.Clock.Now()
	tokens := "/v1/service-accounts/" + id + "/tokens"
	for _, c := range []struct {
		name, path string
		body       map[string]any
		status     int
		want       string
	}{
		{"no name", tokens, map[string]any{}, 400, `"name"`},
		{"a long name", tokens, map[string]any{"name": strings.Repeat("n", 101)}, 400, `"name"`},
		{"a name of two lines", tokens, map[string]any{"name": "a\nb"}, 400, `"name"`},
		{"no scope", tokens, map[string]any{"name": "n", "scopes": []string{}}, 400, `"scopes"`},
		{"an unknown scope", tokens, map[string]any{"name": "n", "scopes": []string{"customers.burn"}}, 400, `"scopes.0"`},
		{"a scope for people", tokens, map[string]any{"name": "n", "scopes": []string{"users.me", "users.password"}}, 400, `"scopes.1"`},
		{"a scope that needs a second factor", tokens, map[string]any{"name": "n", "scopes": []string{"service_accounts.create_token"}}, 400, `"scopes.0"`},
		{"a scope of API keys", tokens, map[string]any{"name": "n", "scopes": []string{"users.register"}}, 400, `"scopes.0"`},
		{"all scopes beside another", tokens, map[string]any{"name": "n", "scopes": []string{"*", "users.me"}}, 400, `"scopes"`},
		{"a scope with a comma", tokens, map[string]any{"name": "n", "scopes": []string{"users.me,customers.list"}}, 400, `"scopes.0"`},
		{"no network", tokens, map[string]any{"name": "n", "networks": []string{}}, 400, `"networks"`},
		{"every network", tokens, map[string]any{"name": "n", "networks": []string{"0.0.0.0/0"}}, 400, `"networks.0"`},
		{"every IPv6 network", tokens, map[string]any{"name": "n", "networks": []string{"::/0"}}, 400, `"networks.0"`},
		{"bits after the prefix", tokens, map[string]any{"name": "n", "networks": []string{"192.0.2.7/24"}}, 400, `"networks.0"`},
		{"a mapped network", tokens, map[string]any{"name": "n", "networks": []string{"::ffff:192.0.2.0/120"}}, 400, `"networks.0"`},
		{"a zone", tokens, map[string]any{"name": "n", "networks": []string{"fe80::1%eth0"}}, 400, `"networks.0"`},
		{"a name of a host", tokens, map[string]any{"name": "n", "networks": []string{"192.0.2.0/24", "bank.example"}}, 400, `"networks.1"`},
		{"a network with a comma", tokens, map[string]any{"name": "n", "networks": []string{"192.0.2.1,198.51.100.1"}}, 400, `"networks.0"`},
		{"an empty network", tokens, map[string]any{"name": "n", "networks": []string{""}}, 400, `"networks.0"`},
		{"too many networks", tokens, map[string]any{"name": "n", "networks": strings.Split(strings.Repeat("192.0.2.1 ", 21)+"192.0.2.1", " ")}, 400, `"networks"`},
		{"an expiry in the past", tokens, map[string]any{"name": "n", "expires_at": store.TimeOf(now.Add(-time.Second))}, 400, `"expires_at"`},
		{"an expiry now", tokens, map[string]any{"name": "n", "expires_at": store.TimeOf(now)}, 400, `"expires_at"`},
		{"an expiry in two years", tokens, map[string]any{"name": "n", "expires_at": store.TimeOf(now.Add(2 * 365 * 24 * time.Hour))}, 400, `"expires_at"`},
		{"an expiry that is no time", tokens, map[string]any{"name": "n", "expires_at": "tomorrow"}, 400, `"expires_at"`},
		{"all wrong at once", tokens, map[string]any{"scopes": []string{}, "networks": []string{"x"}}, 400, `"networks.0"`},
		{"a token of an unknown account", "/v1/service-accounts/" + store.NewID() + "/tokens", map[string]any{"name": "n"}, 404, "account_not_found"},
		{"a token of a person", "/v1/service-accounts/" + s.Admin().UserID + "/tokens", map[string]any{"name": "n"}, 404, "account_not_found"},
		{"an account without a name", "/v1/service-accounts", map[string]any{"name": " "}, 400, `"name"`},
		{"an account with an unknown role", "/v1/service-accounts", map[string]any{"name": "n", "roles": []string{"Emperor"}}, 400, `"roles.0"`},
		{"an account with a long description", "/v1/service-accounts", map[string]any{"name": "n", "description": strings.Repeat("d", 501)}, 400, `"description"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := s.Admin().Do("POST", c.path, c.body).Expect(t, c.status)
			if !strings.Contains(got.Body, c.want) {
				t.Errorf("%s is missing from %s", c.want, got.Body)
			}
		})
	}
}

// A service account neither becomes a person nor extends its own rights, not even with the role Administrator.
func TestHostile_MachineDoesWhatPeopleDo(t *testing.T) {
	s := servertest.Start(t)
	id := account(t, s, access.Administrator)
	k := issue(t, s, id, nil)
	client := k.with(s)
	person := s.User(access.Customer)
	client.Do("GET", "/v1/users", nil).Expect(t, http.StatusOK)
	own := "/v1/users/" + id
	for _, c := range []struct {
		name, method, path string
		body               any
	}{
		{"a token for itself", "POST", "/v1/service-accounts/" + id + "/tokens", map[string]any{"name": "Second"}},
		{"another account", "POST", "/v1/service-accounts", map[string]any{"name": "Child"}},
		{"a grant", "POST", "/v1/rbac/grants", map[string]any{"user_id": id, "endpoint": "GET /v1/audit"}},
		{"a role", "PUT", "/v1/users/" + person.UserID + "/roles", map[string]any{"roles": []string{"Administrator"}}},
		{"an API key", "POST", "/v1/api-keys", map[string]any{"name": "Key"}},
		{"a credential", "POST", own + "/credentials", map[string]any{"credential_type": "username", "credential_value": "machine"}},
		{"its password", "PUT", own + "/password", map[string]any{"old_password": "x", "password": "a long enough password 42"}},
		{"the password of a person", "PUT", "/v1/users/" + person.UserID + "/password", map[string]any{"password": "a long enough password 43"}},
		{"a second factor", "POST", own + "/factors", map[string]any{"type": "totp"}},
		{"a reauthentication", "POST", own + "/reauthenticate", map[string]any{"password": "x"}},
		{"its options", "POST", own + "/reauthenticate/options", nil},
		{"signing out", "POST", "/v1/logout", nil},
		{"disabling a person", "PATCH", "/v1/users/" + person.UserID, map[string]any{"status": "disabled"}},
		{"the revocation of its token", "DELETE", "/v1/service-accounts/" + id + "/tokens/" + k.ID, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := client.Do(c.method, c.path, c.body)
			got.ExpectError(t, http.StatusForbidden, "service_accounts.person_required")
			if got.Header.Get("WWW-Authenticate") != "" {
				t.Errorf("the answer asks a program to authenticate: %s", got.Header.Get("WWW-Authenticate"))
			}
		})
	}
}

// Administrators cannot turn a service account into a person, and people do not find it where they look for people.
func TestHostile_MachineIsNoPerson(t *testing.T) {
	s := servertest.Start(t)
	id := account(t, s, access.Administrator)
	admin := s.Admin()
	const password = "a long enough password 42"
	admin.Do("PUT", "/v1/users/"+id+"/password", map[string]any{"password": password}).ExpectError(t, http.StatusConflict, "users.service_account")
	admin.Do("POST", "/v1/users/"+id+"/credentials", map[string]any{"credential_type": "username", "credential_value": "machine"}).
		ExpectError(t, http.StatusConflict, "users.service_account")
	if _, err := s.Users.SetPassword(t.Context(), id, password); err == nil {
		t.Error("the command set a password")
	}
	s.Anonymous().Do("POST", "/authenticate", map[string]any{"user_id": id, "password": password}).
		ExpectError(t, http.StatusUnauthorized, "auth_m.invalid_credentials")
	admin.Do("POST", "/v1/chats", map[string]any{"type": "direct", "participants": []string{id}}).Expect(t, http.StatusBadRequest)
	// It does not count as the second administrator: no administrator could sign in any more.
	admin.Do("PATCH", "/v1/users/"+admin.UserID, map[string]any{"status": "disabled"}).ExpectError(t, http.StatusConflict, "users.last_administrator")
}

// Callers with grants on service accounts do not get the rights of an account through a token of it.
func TestHostile_TokenOfAMorePowerfulAccount(t *testing.T) {
	s := servertest.Start(t)
	keeper := s.User(access.Advisor)
	for _, grant := range []map[string]any{
		{"user_id": keeper.UserID, "rec_type": "service_accounts", "permissions": []string{"create", "read_all", "update"}},
		{"user_id": keeper.UserID, "endpoint": "POST /v1/service-accounts"},
		{"user_id": keeper.UserID, "endpoint": "PATCH /v1/service-accounts/{id}"},
		{"user_id": keeper.UserID, "endpoint": "POST /v1/service-accounts/{id}/tokens"},
	} {
		s.Admin().Do("POST", "/v1/rbac/grants", grant).Expect(t, http.StatusCreated)
	}
	powerful, granted, on, equal := account(t, s, access.Administrator), account(t, s), account(t, s), account(t, s, access.Advisor)
	s.Admin().Do("POST", "/v1/rbac/grants", map[string]any{"user_id": granted, "endpoint": "GET /v1/audit"}).Expect(t, http.StatusCreated)
	customer := s.Admin().Create("/v1/customers", map[string]any{"first_name": "Vreni", "last_name": "Muster", "email": "vreni@example.ch"})
	s.Admin().Do("POST", "/v1/rbac/grants", map[string]any{"user_id": on, "rec_type": "customers", "rec_id": customer, "permissions": []string{"delete"}}).Expect(t, http.StatusCreated)
	for name, id := range map[string]string{"a role that the caller lacks": powerful, "a grant on an endpoint": granted, "a grant on a record": on} {
		got := keeper.Do("POST", "/v1/service-accounts/"+id+"/tokens", map[string]any{"name": "Mine"})
		if got.Status != http.StatusForbidden || !strings.Contains(got.Body, "grant_not_held") {
			t.Errorf("%s: got %d %s", name, got.Status, got.Body)
		}
	}
	keeper.Do("POST", "/v1/service-accounts/"+equal+"/tokens", map[string]any{"name": "Mine"}).Expect(t, http.StatusCreated)
	keeper.Do("POST", "/v1/service-accounts", map[string]any{"name": "Mine", "roles": []string{"Administrator"}}).Expect(t, http.StatusForbidden)
	keeper.Do("POST", "/v1/service-accounts", map[string]any{"name": "Mine", "roles": []string{"Advisor"}}).Expect(t, http.StatusCreated)
	keeper.Do("PATCH", "/v1/service-accounts/"+powerful, map[string]any{"status": "disabled"}).ExpectError(t, http.StatusForbidden, "rbac.grant_not_held")
	s.Admin().Do("PATCH", "/v1/service-accounts/"+powerful, map[string]any{"status": "disabled"}).Expect(t, http.StatusOK)
	keeper.Do("PATCH", "/v1/service-accounts/"+powerful, map[string]any{"status": "active"}).Expect(t, http.StatusForbidden)
}

// Tokens of one account are not reached through the path of another, and secrets never leave the server again.
func TestHostile_PathsAndSecrets(t *testing.T) {
	s := servertest.Start(t)
	one, k, client := backOffice(t, s)
	other := account(t, s)
	s.Admin().Do("DELETE", "/v1/service-accounts/"+other+"/tokens/"+k.ID, nil).ExpectError(t, http.StatusNotFound, "service_accounts.token_not_found")
	client.Do("GET", "/v1/users/me", nil).Expect(t, http.StatusOK)
	for _, path := range []string{"/v1/service-accounts", "/v1/service-accounts/" + one, "/v1/service-accounts/" + one + "/tokens", "/v1/audit"} {
		if got := s.Admin().Do("GET", path, nil).Expect(t, http.StatusOK); strings.Contains(got.Body, k.Text[len(k.Text)-43:]) || strings.Contains(got.Body, "token_hash") {
			t.Errorf("%s reveals the secret: %s", path, got.Body)
		}
	}
	for range 2 { // again, without an effect
		s.Admin().Do("DELETE", "/v1/service-accounts/"+one+"/tokens/"+k.ID, nil).Expect(t, http.StatusOK)
	}
}

// Accounts and tokens need the second factor of an administrator, or a recent authentication of one without.
func TestAssurance_OfAdministrators(t *testing.T) {
	s := servertest.Start(t)
	id, k, _ := backOffice(t, s)
	s.Clock.Advance(11 * time.Minute)
	for _, c := range []struct {
		method, path string
		body         any
	}{
		{"POST", "/v1/service-accounts", map[string]any{"name": "n"}},
		{"PATCH", "/v1/service-accounts/" + id, map[string]any{"name": "n"}},
		{"POST", "/v1/service-accounts/" + id + "/tokens", map[string]any{"name": "n"}},
		{"DELETE", "/v1/service-accounts/" + id + "/tokens/" + k.ID, nil},
		{"DELETE", "/v1/service-accounts/" + id, nil},
	} {
		s.Admin().Do(c.method, c.path, c.body).ExpectError(t, http.StatusUnauthorized, "auth_m.insufficient_user_authentication")
	}
	s.Admin().Do("GET", "/v1/service-accounts", nil).Expect(t, http.StatusOK)
}

// FuzzParseToken checks that every accepted text is the only text of its token.
func FuzzParseToken(f *testing.F) {
	f.Add(serviceaccounts.NewTokenText(store.NewID()))
	f.Add("kontor_sa_")
	f.Add("kontor_sa_" + strings.Repeat("0", 32) + "_" + strings.Repeat("\n", 43))
	f.Fuzz(func(t *testing.T, text string) {
		id, ok := serviceaccounts.ParseToken(text)
		if !ok {
			return
		}
		if want := "kontor_sa_" + strings.ReplaceAll(id, "-", "") + "_" + text[len(text)-43:]; text != want {
			t.Errorf("%q is accepted beside %q", text, want)
		}
	})
}

// FuzzParseNetwork checks that an accepted network contains its address, and is its own form.
func FuzzParseNetwork(f *testing.F) {
	for _, text := range []string{"192.0.2.0/24", "192.0.2.1", "2001:db8::/32", "::1", "0.0.0.0/0", "fe80::1%1", "::ffff:1.2.3.4"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		network, ok := serviceaccounts.ParseNetwork(text)
		if !ok {
			return
		}
		if again, err := netip.ParsePrefix(network.String()); err != nil || again != network || !network.Contains(network.Addr()) || network.Bits() == 0 {
			t.Errorf("%q became %s", text, network)
		}
	})
}
