package oidc_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"kontor/modules/identity/oidc/oidctest"
	"kontor/server/servertest"
)

// person returns the claims of a person with a verified address and groups.
func person(subject, email string, groups ...string) oidctest.Claims {
	return oidctest.Claims{"sub": subject, "email": email, "email_verified": true, "groups": groups, "name": "Anna Keller", "locale": "de-CH"}
}

// A user with the same address is asked to sign in once. Only then the account is linked.
func TestLink_IsConfirmedByAPassword(t *testing.T) {
	h := start(t, createsUsers)
	advisor := h.User("Advisor")
	anna := person("sub-1", h.email(advisor.UserID), "bank-admins")
	b := h.browser()
	fragment := b.signIn(anna)
	code := fragment.Get("oidc_link")
	if code == "" || fragment.Get("oidc_code") != "" {
		t.Fatalf("the console was opened with %v", fragment)
	}
	if n := h.count(`SELECT count(*) FROM identities`); n != 0 {
		t.Errorf("%d identities before the confirmation", n)
	}
	if got := h.roles(advisor.UserID); got != "Advisor" {
		t.Errorf("the provider has changed the roles of a user who is not linked to %s", got)
	}
	// The code does not sign in.
	b.do("POST", "/authenticate/oidc", map[string]string{"code": code}).ExpectError(t, http.StatusUnauthorized, "auth_m.oidc_invalid_code")
	b.client = advisor
	linked := b.do("POST", "/v1/users/"+advisor.UserID+"/identities", map[string]string{"password": userPassword, "code": code}).Expect(t, http.StatusCreated)
	if !strings.Contains(linked.Body, `"subject":"sub-1"`) {
		t.Errorf("linked: %s", linked.Body)
	}
	b.client = h.Anonymous()
	if c := b.tokens(b.signIn(anna)); c.UserID != advisor.UserID {
		t.Errorf("signed in as %s, want %s", c.UserID, advisor.UserID)
	}
	if got := h.roles(advisor.UserID); got != "Administrator" {
		t.Errorf("the roles are %s", got)
	}
	inbox := advisor.Do("GET", "/v1/notifications", nil).Expect(t, http.StatusOK)
	if !strings.Contains(inbox.Body, "127.0.0.1") {
		t.Errorf("the user was not notified: %s", inbox.Body)
	}
}

func TestLink_IsRefused(t *testing.T) {
	h := start(t)
	victim, other, customer := h.User("Advisor"), h.User("Advisor"), h.User("Customer")
	path := "/v1/users/" + victim.UserID + "/identities"
	ask := func(b *browser) map[string]string {
		t.Helper()
		return map[string]string{"password": userPassword, "code": b.signIn(person("sub-1", h.email(victim.UserID))).Get("oidc_link")}
	}
	cases := map[string]struct {
		do     func(b *browser) servertest.Response
		status int
		code   string
	}{
		"by another user for themselves": {func(b *browser) servertest.Response {
			body := ask(b)
			b.client = other
			return b.do("POST", "/v1/users/"+other.UserID+"/identities", body)
		}, 401, "auth_m.oidc_invalid_code"},
		"by another user for the victim": {func(b *browser) servertest.Response {
			body := ask(b)
			b.client = other
			return b.do("POST", path, body)
		}, 403, "common.rbac_no_rec_access"},
		"in another browser": {func(b *browser) servertest.Response {
			body := ask(b)
			return victim.Do("POST", path, body)
		}, 401, "auth_m.oidc_invalid_code"},
		"after ten minutes": {func(b *browser) servertest.Response {
			body := ask(b)
			h.Clock.Advance(10 * time.Minute)
			b.client = h.SignIn(h.email(victim.UserID), servertest.Password)
			return b.do("POST", path, body)
		}, 401, "auth_m.oidc_invalid_code"},
		"with the code of a sign-in": {func(b *browser) servertest.Response {
			h.link(other.UserID, "sub-other")
			code := b.signIn(person("sub-other", "", "bank-advisors")).Get("oidc_code")
			b.client = h.SignIn(h.email(other.UserID), servertest.Password)
			return b.do("POST", "/v1/users/"+other.UserID+"/identities", map[string]string{"password": userPassword, "code": code})
		}, 401, "auth_m.oidc_invalid_code"},
		"with a subject by a user who may not": {func(*browser) servertest.Response {
			return h.SignIn(h.email(victim.UserID), servertest.Password).Do("POST", path, map[string]string{"subject": "mine"})
		}, 403, "common.rbac_no_rec_access"},
		"of a customer by an administrator": {func(*browser) servertest.Response {
			return h.SignIn(servertest.AdminEmail, servertest.AdminPassword).Do("POST", "/v1/users/"+customer.UserID+"/identities", map[string]string{"subject": "sub-c"})
		}, 409, "users.not_staff"},
		"of a subject that is linked": {func(*browser) servertest.Response {
			return h.SignIn(servertest.AdminEmail, servertest.AdminPassword).Do("POST", path, map[string]string{"subject": "sub-other"})
		}, 409, "users.identity_exists"},
		"with both members": {func(*browser) servertest.Response {
			return h.SignIn(h.email(victim.UserID), servertest.Password).Do("POST", path, map[string]string{"subject": "a", "code": "b"})
		}, 400, "common.invalid_input"},
		"with a stale session": {func(b *browser) servertest.Response {
			b.client = h.SignIn(h.email(victim.UserID), servertest.Password)
			h.Clock.Advance(9 * time.Minute)
			body := ask(&browser{h: h, client: h.Anonymous()})
			h.Clock.Advance(2 * time.Minute)
			return b.do("POST", path, body)
		}, 401, "auth_m.insufficient_user_authentication"},
	}
	for _, name := range []string{"by another user for themselves", "by another user for the victim", "in another browser", "after ten minutes",
		"with the code of a sign-in", "with a subject by a user who may not", "of a customer by an administrator", "of a subject that is linked",
		"with both members", "with a stale session"} {
		t.Run(name, func(t *testing.T) {
			c := cases[name]
			c.do(h.browser()).ExpectError(t, c.status, c.code)
			if n := h.count(`SELECT count(*) FROM identities WHERE user_id = $1`, victim.UserID); n != 0 {
				t.Errorf("%d identities of the victim", n)
			}
		})
	}
}

func TestUnlink_EndsTheSessionsAndTheSignIn(t *testing.T) {
	h := start(t)
	advisor, other := h.User("Advisor"), h.User("Advisor")
	id := h.link(advisor.UserID, "sub-1")
	b := h.browser()
	federated := b.tokens(b.signIn(person("sub-1", "", "bank-advisors")))
	waiting := b.signIn(person("sub-1", "", "bank-advisors"))
	path := "/v1/users/" + advisor.UserID + "/identities/" + id
	other.Do("DELETE", path, nil).ExpectError(t, http.StatusForbidden, "common.rbac_no_rec_access")
	h.Admin().Do("DELETE", "/v1/users/"+other.UserID+"/identities/"+id, nil).ExpectError(t, http.StatusNotFound, "users.identity_not_found")
	other.Do("GET", "/v1/users/"+advisor.UserID+"/identities", nil).ExpectError(t, http.StatusForbidden, "common.rbac_no_rec_access")
	advisor.Do("DELETE", path, map[string]any{"password": userPassword}).Expect(t, http.StatusOK)
	advisor.Do("GET", "/v1/users/me", nil).Expect(t, http.StatusOK) // the session that unlinks stays
	federated.Do("GET", "/v1/users/me", nil).ExpectError(t, http.StatusUnauthorized, "common.unauthorized")
	b.do("POST", "/authenticate/oidc", map[string]string{"code": waiting.Get("oidc_code")}).ExpectError(t, http.StatusUnauthorized, "auth_m.oidc_invalid_code")
	h.expectError(b.signIn(person("sub-1", "", "bank-advisors")), "auth_m.oidc_no_account")
}

func TestRoles_FollowTheClaim(t *testing.T) {
	h := start(t)
	advisor := h.User("Advisor", "Customer")
	h.link(advisor.UserID, "sub-1")
	steps := []struct {
		name   string
		groups any // nil: no claim
		want   string
		failed string
	}{
		{"added", []string{"bank-admins", "bank-advisors", "others"}, "Administrator,Advisor,Customer", ""},
		{"removed", []string{"bank-admins"}, "Administrator,Customer", ""},
		{"a text", "bank-advisors", "Advisor,Customer", ""},
		{"an object", map[string]any{"bank-admins": true}, "Advisor,Customer", "auth_m.oidc_failed"},
		{"numbers", []any{1, "bank-admins"}, "Advisor,Customer", "auth_m.oidc_failed"},
		{"too many", make([]string, 1001), "Advisor,Customer", "auth_m.oidc_failed"},
		{"too long", []string{strings.Repeat("x", 257), "bank-admins"}, "Advisor,Customer", "auth_m.oidc_failed"},
		{"none: no longer staff", []string{}, "Customer", "auth_m.oidc_no_account"},
		{"again", []string{"bank-advisors"}, "Advisor,Customer", ""},
		{"missing: no longer staff", nil, "Customer", "auth_m.oidc_no_account"},
	}
	for _, step := range steps {
		claims := oidctest.Claims{"sub": "sub-1"}
		if step.groups != nil {
			claims["groups"] = step.groups
		}
		fragment := h.browser().signIn(claims)
		if fragment.Get("oidc_error") != step.failed {
			t.Errorf("%s: the console was opened with %v", step.name, fragment)
		}
		if got := h.roles(advisor.UserID); got != step.want {
			t.Errorf("%s: the roles are %s, want %s", step.name, got, step.want)
		}
	}
}

func TestRoles_KeepTheLastAdministrator(t *testing.T) {
	h := start(t)
	admin := h.Admin()
	h.link(admin.UserID, "sub-admin")
	b := h.browser()
	c := b.tokens(b.signIn(person("sub-admin", "", "bank-advisors")))
	if got := h.roles(admin.UserID); c.UserID != admin.UserID || got != "Administrator,Advisor" {
		t.Errorf("the roles are %s", got)
	}
}

func TestCreate_AtTheFirstSignIn(t *testing.T) {
	h := start(t, createsUsers)
	b := h.browser()
	c := b.tokens(b.signIn(person("sub-new", "new.advisor@bank.test", "bank-advisors")))
	user := h.Admin().Do("GET", "/v1/users/"+c.UserID, nil).Expect(t, http.StatusOK)
	for _, want := range []string{`"display_name":"Anna Keller"`, `"language":"de"`, `"roles":["Advisor"]`, `"status":"active"`} {
		if !strings.Contains(user.Body, want) {
			t.Errorf("%s is missing in %s", want, user.Body)
		}
	}
	if again := b.tokens(b.signIn(person("sub-new", "other@bank.test", "bank-advisors"))); again.UserID != c.UserID {
		t.Errorf("the second sign-in is of user %s", again.UserID)
	}
	// The address cannot be used to set a password: that would outlive the account at the provider.
	h.Keyed().Do("POST", "/v1/users/initiate-recovery", map[string]string{"credential_type": "email", "credential_value": "new.advisor@bank.test"}).Expect(t, http.StatusOK)
	if n := h.count(`SELECT count(*) FROM otps`); n != 0 {
		t.Errorf("%d codes for the recovery of a federated user", n)
	}
	h.Anonymous().Do("POST", "/authenticate", map[string]string{"user_id": "new.advisor@bank.test", "password": ""}).Expect(t, http.StatusBadRequest)
}

func TestCreate_IsRefused(t *testing.T) {
	h := start(t, createsUsers)
	customer := h.User("Customer")
	disabled := h.User("Advisor")
	h.setStatus(disabled.UserID, "disabled")
	users := h.count(`SELECT count(*) FROM people`)
	for name, claims := range map[string]oidctest.Claims{
		"without a mapped role":              person("sub-1", "a@bank.test", "others"),
		"without roles":                      {"sub": "sub-1", "email": "a@bank.test", "email_verified": true},
		"without an address":                 {"sub": "sub-1", "groups": "bank-admins"},
		"with an address that is unverified": {"sub": "sub-1", "email": "a@bank.test", "email_verified": false, "groups": "bank-admins"},
		"with an address of unknown state":   {"sub": "sub-1", "email": "a@bank.test", "email_verified": nil, "groups": "bank-admins"},
		"with a malformed address":           person("sub-1", "a@@bank.test", "bank-admins"),
		"with the address of a customer":     person("sub-1", h.email(customer.UserID), "bank-admins"),
		"with the address of a disabled one": person("sub-1", h.email(disabled.UserID), "bank-admins"),
		"unverified, of an administrator":    {"sub": "sub-1", "email": servertest.AdminEmail, "email_verified": false, "groups": "bank-admins"},
	} {
		fragment := h.browser().signIn(claims)
		h.expectError(fragment, "auth_m.oidc_no_account")
		if now := h.count(`SELECT count(*) FROM people`); now != users {
			t.Errorf("%s: a user was created", name)
		}
	}
	if got := h.roles(customer.UserID); got != "Customer" {
		t.Errorf("the roles of the customer are %s", got)
	}
}

// A look-alike of an address must neither link nor create a second account of it.
func TestCreate_FoldsAddresses(t *testing.T) {
	h := start(t, createsUsers)
	advisor := h.User("Advisor")
	fragment := h.browser().signIn(person("sub-1", strings.ToUpper(h.email(advisor.UserID)), "bank-admins"))
	if fragment.Get("oidc_link") == "" {
		t.Errorf("the console was opened with %v", fragment)
	}
}
