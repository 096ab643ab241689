package serviceaccounts_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store"
)

// A back office reads customers with a token, and nothing else.
func TestToken_ReadsCustomersAndNothingElse(t *testing.T) {
	s := servertest.Start(t)
	id := s.Admin().Create("/v1/service-accounts", map[string]any{"name": "Back office"})
	for _, grant := range []map[string]any{
		{"user_id": id, "endpoint": "GET /v1/customers"},
		{"user_id": id, "rec_type": "customers", "permissions": []string{"read_all"}},
	} {
		s.Admin().Do("POST", "/v1/rbac/grants", grant).Expect(t, http.StatusCreated)
	}
	customer := s.Admin().Create("/v1/customers", map[string]any{"first_name": "Vreni", "last_name": "Muster", "type": "individual", "email": "vreni@example.ch"})
	client := issue(t, s, id, nil).with(s)
	got := client.Do("GET", "/v1/customers", nil).Expect(t, http.StatusOK)
	if !strings.Contains(got.Body, customer) {
		t.Errorf("the list lacks the customer: %s", got.Body)
	}
	for _, e := range s.Table() {
		if e.Access.IsPublic() || e.Key() == "GET /v1/customers" {
			continue
		}
		path := strings.NewReplacer("{id}", customer, "{customer_id}", customer).Replace(e.Path)
		got := client.Do(e.Method, path, nil)
		if e.Access.TakesAPIKey() && got.Status == http.StatusUnauthorized {
			continue
		}
		if got.Status != http.StatusForbidden {
			t.Errorf("%s: got %d %s", e.Key(), got.Status, got.Body)
		}
	}
}

// A token may call what both its scopes and the grants of its account allow.
func TestToken_HasScopes(t *testing.T) {
	s := servertest.Start(t)
	id := account(t, s, access.Advisor)
	client := issue(t, s, id, map[string]any{"scopes": []string{"customers.list", "users.me", "rbac.roles.list"}}).with(s)
	client.Do("GET", "/v1/customers", nil).Expect(t, http.StatusOK)
	client.Do("GET", "/v1/users/me", nil).Expect(t, http.StatusOK)
	client.Do("GET", "/v1/personas", nil).Expect(t, http.StatusForbidden)
	client.Do("GET", "/v1/rbac/roles", nil).Expect(t, http.StatusForbidden) // a scope without a grant
}

// A check of an endpoint counts the scopes of the token that asks.
func TestToken_ChecksItsScopes(t *testing.T) {
	s := servertest.Start(t)
	id := account(t, s, access.Administrator)
	client := issue(t, s, id, map[string]any{"scopes": []string{"customers.list", "rbac.check"}}).with(s)
	checks := []map[string]any{{"endpoint": "GET /v1/customers"}, {"endpoint": "GET /v1/personas"}}
	answer := client.Do("POST", "/v1/rbac/check", map[string]any{"checks": checks}).Expect(t, http.StatusOK).JSON(t)["results"].([]any)
	for i, want := range []bool{true, false} {
		if got := answer[i].(map[string]any)["allowed"]; got != want {
			t.Errorf("%v: allowed is %v", checks[i], got)
		}
	}
}

// The next request after a change is decided by the change.
func TestToken_EndsAtOnce(t *testing.T) {
	for name, end := range map[string]func(s *servertest.Server, accountID string, k token) servertest.Response{
		"revoked": func(s *servertest.Server, accountID string, k token) servertest.Response {
			return s.Admin().Do("DELETE", "/v1/service-accounts/"+accountID+"/tokens/"+k.ID, nil)
		},
		"disabled": func(s *servertest.Server, accountID string, _ token) servertest.Response {
			return s.Admin().Do("DELETE", "/v1/service-accounts/"+accountID, nil)
		},
		"disabled by status": func(s *servertest.Server, accountID string, _ token) servertest.Response {
			return s.Admin().Do("PATCH", "/v1/service-accounts/"+accountID, map[string]any{"status": "disabled"})
		},
		"disabled as a user": func(s *servertest.Server, accountID string, _ token) servertest.Response {
			return s.Admin().Do("PATCH", "/v1/users/"+accountID, map[string]any{"status": "disabled"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := servertest.Start(t)
			accountID, k, client := backOffice(t, s)
			other := issue(t, s, accountID, nil).with(s)
			for range 3 {
				client.Do("GET", "/v1/users/me", nil).Expect(t, http.StatusOK)
				other.Do("GET", "/v1/users/me", nil).Expect(t, http.StatusOK)
			}
			end(s, accountID, k).Expect(t, http.StatusOK)
			client.Do("GET", "/v1/users/me", nil).Expect(t, http.StatusUnauthorized)
			if status := other.Do("GET", "/v1/users/me", nil).Status; (status == http.StatusOK) != (name == "revoked") {
				t.Errorf("the other token got %d", status)
			}
		})
	}
}

// Tokens of an account that was disabled by its status are valid again with it; those that a DELETE revoked are not.
func TestAccount_BecomesActiveAgain(t *testing.T) {
	s := servertest.Start(t)
	accountID, _, client := backOffice(t, s)
	path := "/v1/service-accounts/" + accountID
	s.Admin().Do("PATCH", path, map[string]any{"status": "disabled"}).Expect(t, http.StatusOK)
	s.Admin().Do("POST", path+"/tokens", map[string]any{"name": "No"}).ExpectError(t, http.StatusConflict, "service_accounts.account_disabled")
	s.Admin().Do("PATCH", path, map[string]any{"status": "active"}).Expect(t, http.StatusOK)
	client.Do("GET", "/v1/users/me", nil).Expect(t, http.StatusOK)
	s.Admin().Do("DELETE", path, nil).Expect(t, http.StatusOK)
	s.Admin().Do("DELETE", path, nil).Expect(t, http.StatusOK)
	s.Admin().Do("PATCH", path, map[string]any{"status": "active", "name": "Night job", "description": "New."}).Expect(t, http.StatusOK)
	client.Do("GET", "/v1/users/me", nil).Expect(t, http.StatusUnauthorized)
	got := s.Admin().Do("GET", path, nil).Expect(t, http.StatusOK).JSON(t)
	if got["name"] != "Night job" || got["description"] != "New." || got["status"] != "active" {
		t.Errorf("got %v", got)
	}
}

// Roles that change apply to the next request.
func TestRoles_ApplyAtOnce(t *testing.T) {
	s := servertest.Start(t)
	accountID, _, client := backOffice(t, s)
	client.Do("GET", "/v1/customers", nil).Expect(t, http.StatusOK)
	s.Admin().Do("PUT", "/v1/users/"+accountID+"/roles", map[string]any{"roles": []string{}}).Expect(t, http.StatusOK)
	client.Do("GET", "/v1/customers", nil).Expect(t, http.StatusForbidden)
	s.Admin().Do("PUT", "/v1/users/"+accountID+"/roles", map[string]any{"roles": []string{"Advisor"}}).Expect(t, http.StatusOK)
	client.Do("GET", "/v1/customers", nil).Expect(t, http.StatusOK)
}

// A token ends at its time, also when the clock is set back after it.
func TestToken_Expires(t *testing.T) {
	s := servertest.Start(t)
	accountID := account(t, s, access.Advisor)
	client := issue(t, s, accountID, map[string]any{"expires_at": store.TimeOf(s.Clock.Now().Add(time.Hour))}).with(s)
	client.Do("GET", "/v1/users/me", nil).Expect(t, http.StatusOK)
	s.Clock.Advance(time.Hour - time.Second)
	client.Do("GET", "/v1/users/me", nil).Expect(t, http.StatusOK)
	s.Clock.Advance(time.Second)
	client.Do("GET", "/v1/users/me", nil).Expect(t, http.StatusUnauthorized)
	s.SignIn(servertest.AdminEmail, servertest.AdminPassword) // a transaction at this time
	s.Clock.Advance(-time.Minute)
	client.Do("GET", "/v1/users/me", nil).Expect(t, http.StatusUnauthorized)
}

// The network of a token is that of the client: X-Forwarded-For counts behind trusted proxies only.
func TestToken_IsBoundToNetworks(t *testing.T) {
	for _, c := range []struct {
		name      string
		proxies   []string
		networks  []string
		forwarded string
		want      int
	}{
		{"from the network", nil, []string{"127.0.0.0/8", "::1"}, "", 200},
		{"from another network", nil, []string{"192.0.2.0/24"}, "", 401},
		{"a spoofed header", nil, []string{"192.0.2.0/24"}, "192.0.2.7", 401},
		{"a spoofed header does not lock out", nil, []string{"127.0.0.1"}, "198.51.100.1", 200},
		{"behind a proxy", []string{"127.0.0.0/8", "::1/128"}, []string{"192.0.2.0/24"}, "192.0.2.7", 200},
		{"behind a proxy, with forged addresses to the left", []string{"127.0.0.0/8", "::1/128"}, []string{"192.0.2.0/24"}, "192.0.2.7, 198.51.100.1", 401},
		{"behind a proxy, IPv6", []string{"127.0.0.0/8", "::1/128"}, []string{"2001:db8::/32"}, "2001:db8:1::9", 200},
		{"behind a proxy, mapped IPv4", []string{"127.0.0.0/8", "::1/128"}, []string{"192.0.2.7"}, "::ffff:192.0.2.7", 200},
		{"behind a proxy that does not know", []string{"127.0.0.0/8", "::1/128"}, []string{"192.0.2.0/24", "127.0.0.1"}, "unknown", 401},
		{"the proxy itself", []string{"127.0.0.0/8", "::1/128"}, []string{"192.0.2.0/24"}, "", 401},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := servertest.Start(t, func(o *settings.Settings) { o.Server.TrustedProxies = prefixes(t, c.proxies) })
			client := issue(t, s, account(t, s, access.Advisor), map[string]any{"networks": c.networks}).with(s)
			if c.forwarded != "" {
				client = client.With("X-Forwarded-For", c.forwarded)
			}
			for range 3 { // from the table and from memory
				client.Do("GET", "/v1/users/me", nil).Expect(t, c.want)
			}
		})
	}
}

// A request from another network does not count as a use, and a token that is known in memory is refused there, too.
func TestToken_RefusedElsewhereWhenKnown(t *testing.T) {
	s := servertest.Start(t, func(o *settings.Settings) { o.Server.TrustedProxies = prefixes(t, []string{"127.0.0.0/8", "::1/128"}) })
	accountID := account(t, s, access.Advisor)
	client := issue(t, s, accountID, map[string]any{"networks": []string{"192.0.2.0/24"}}).with(s)
	client.With("X-Forwarded-For", "192.0.2.1").Do("GET", "/v1/users/me", nil).Expect(t, http.StatusOK)
	used := lastUse(t, s, accountID)
	s.Clock.Advance(time.Minute)
	client.With("X-Forwarded-For", "198.51.100.1").Do("GET", "/v1/users/me", nil).Expect(t, http.StatusUnauthorized)
	if now := lastUse(t, s, accountID); now != used || used == nil {
		t.Errorf("last used at %v, then %v", used, now)
	}
}

func lastUse(t *testing.T, s *servertest.Server, accountID string) any {
	t.Helper()
	page := s.Admin().Do("GET", "/v1/service-accounts/"+accountID+"/tokens", nil).Expect(t, http.StatusOK).JSON(t)
	return page["data"].([]any)[0].(map[string]any)["last_used_at"]
}

// The audit trail names the account as actor and the token as its session, and answers mark the account as a service.
func TestAudit_NamesAccountAndToken(t *testing.T) {
	s := servertest.Start(t)
	accountID, k, client := backOffice(t, s)
	customer := client.Create("/v1/customers", map[string]any{"first_name": "Vreni", "last_name": "Muster", "type": "individual", "email": "vreni@example.ch"})
	got := s.Admin().Do("GET", "/v1/audit?search.rec_id="+customer, nil).Expect(t, http.StatusOK)
	for _, want := range []string{`"actor":"` + accountID, `"session_id":"` + k.ID, `"service":true`, "Back office"} {
		if !strings.Contains(got.Body, want) {
			t.Errorf("%s is missing from %s", want, got.Body)
		}
	}
	users := s.Admin().Do("GET", "/v1/users?search.kind=service", nil).Expect(t, http.StatusOK).JSON(t)
	if users["total"] != float64(1) {
		t.Errorf("%v users are service accounts", users["total"])
	}
}

// An Idempotency-Key belongs to the account: all of its tokens share it, and other users do not.
func TestIdempotency_BelongsToTheAccount(t *testing.T) {
	s := servertest.Start(t)
	accountID, _, client := backOffice(t, s)
	other := issue(t, s, accountID, nil).with(s)
	body := map[string]any{"first_name": "Vreni", "last_name": "Muster", "type": "individual", "email": "vreni@example.ch"}
	first := client.With("Idempotency-Key", "once").Create("/v1/customers", body)
	if again := other.With("Idempotency-Key", "once").Create("/v1/customers", body); again != first {
		t.Errorf("the second token created %s beside %s", again, first)
	}
	if by := s.Admin().With("Idempotency-Key", "once").Create("/v1/customers", body); by == first {
		t.Error("another user got the answer of the account")
	}
}

// 50 requests in parallel with a token that is revoked meanwhile: none that began after the revocation succeeds.
func TestToken_RevokedInParallel(t *testing.T) {
	s := servertest.Start(t)
	accountID, k, client := backOffice(t, s)
	var revoked atomic.Bool
	var wait sync.WaitGroup
	for range 50 {
		wait.Go(func() {
			for range 10 {
				after := revoked.Load()
				got, err := client.Try("GET", "/v1/users/me", nil)
				if err != nil {
					t.Error(err)
				} else if after && got.Status != http.StatusUnauthorized || got.Status != http.StatusOK && got.Status != http.StatusUnauthorized {
					t.Errorf("got %d after the revocation: %v", got.Status, after)
				}
			}
		})
	}
	s.Admin().Do("DELETE", "/v1/service-accounts/"+accountID+"/tokens/"+k.ID, nil).Expect(t, http.StatusOK)
	revoked.Store(true)
	wait.Wait()
}

// 50 parallel requests create at most the allowed number of tokens.
func TestTokens_AreLimitedInParallel(t *testing.T) {
	s := servertest.Start(t)
	id := account(t, s)
	admin := s.Admin()
	var made, rejected atomic.Int64
	var wait sync.WaitGroup
	for range 50 {
		wait.Go(func() {
			got, err := admin.Try("POST", "/v1/service-accounts/"+id+"/tokens", map[string]any{"name": "One of many"})
			switch {
			case err != nil:
				t.Error(err)
			case got.Status == http.StatusCreated:
				made.Add(1)
			case got.Status == http.StatusConflict:
				rejected.Add(1)
			default:
				t.Errorf("got %d %s", got.Status, got.Body)
			}
		})
	}
	wait.Wait()
	if made.Load() != 20 || rejected.Load() != 30 {
		t.Errorf("%d tokens made, %d rejected", made.Load(), rejected.Load())
	}
}

// Administrators are notified once of a token that expires within a week.
func TestExpiry_IsAnnouncedOnce(t *testing.T) {
	s := servertest.Start(t)
	id := account(t, s)
	issue(t, s, id, map[string]any{"name": "Soon", "expires_at": store.TimeOf(s.Clock.Now().Add(8 * 24 * time.Hour))})
	issue(t, s, id, map[string]any{"name": "Later"})
	revoked := issue(t, s, id, map[string]any{"name": "Revoked", "expires_at": store.TimeOf(s.Clock.Now().Add(8 * 24 * time.Hour))})
	s.Admin().Do("DELETE", "/v1/service-accounts/"+id+"/tokens/"+revoked.ID, nil).Expect(t, http.StatusOK)
	warnings := func() float64 {
		t.Helper()
		if err := s.Services.WarnOfExpiry(t.Context()); err != nil {
			t.Fatal(err)
		}
		admin := s.SignIn(servertest.AdminEmail, servertest.AdminPassword)
		return admin.Do("GET", "/v1/notifications?search.event=service_token_expiring", nil).Expect(t, http.StatusOK).JSON(t)["total"].(float64)
	}
	if n := warnings(); n != 0 {
		t.Errorf("%v warnings eight days before", n)
	}
	s.Clock.Advance(25 * time.Hour)
	for range 2 {
		if n := warnings(); n != 1 {
			t.Errorf("%v warnings within a week", n)
		}
	}
}
