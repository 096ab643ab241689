package oidc_test

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"kontor/modules/identity/oidc/oidctest"
	"kontor/modules/kit/signin"
	"kontor/server/servertest"
)

// A new account at the provider is proven by an older method, and on trial for a day.
func TestIdentity_IsProvenByAnOldMethod(t *testing.T) {
	h := start(t)
	victim := h.User("Advisor")
	path := "/v1/users/" + victim.UserID + "/identities"
	link := func(members map[string]string) (int, string) {
		b := h.browser()
		members["code"] = b.signIn(person("sub-new", h.email(victim.UserID))).Get("oidc_link")
		b.client = victim
		a := b.do("POST", path, members)
		return a.Status, a.Body
	}
	if status, body := link(map[string]string{}); status != http.StatusForbidden || !strings.Contains(body, "auth_m.proof_required") || !strings.Contains(body, `"password"`) {
		t.Errorf("without a proof: %d %s", status, body)
	}
	if status, body := link(map[string]string{"password": "wrong password, long"}); status != http.StatusBadRequest || !strings.Contains(body, "password") {
		t.Errorf("with a wrong password: %d %s", status, body)
	}
	if n := h.count(`SELECT count(*) FROM identities`); n != 0 {
		t.Fatalf("%d identities without a proof", n)
	}
	if status, body := link(map[string]string{"password": userPassword}); status != http.StatusCreated {
		t.Fatalf("with the password: %d %s", status, body)
	}
	id := h.text(`SELECT id FROM identities`)

	b := h.browser()
	federated := b.tokens(b.signIn(person("sub-new", "", "bank-advisors"))) // it may be used at once
	federated.Do("DELETE", path+"/"+id, nil).ExpectError(t, http.StatusUnauthorized, "auth_m.insufficient_user_authentication")
	federated.Do("POST", "/v1/users/"+victim.UserID+"/reauthenticate", map[string]any{"password": userPassword}).Expect(t, http.StatusOK)
	// A sign-in with the new account proves nothing.
	proof := b.proof(t, person("sub-new", ""))
	b.client = federated
	body := map[string]any{"credential_type": "username", "credential_value": "an.advisor", "oidc_proof": proof}
	b.do("POST", "/v1/users/"+victim.UserID+"/credentials", body).ExpectError(t, http.StatusForbidden, "auth_m.method_on_trial")

	h.Clock.Advance(signin.Trial)
	b = h.browser()
	federated = b.tokens(b.signIn(person("sub-new", "", "bank-advisors")))
	body["oidc_proof"] = b.proof(t, person("sub-new", ""))
	h.Anonymous().Do("POST", "/v1/users/"+victim.UserID+"/credentials", body).ExpectError(t, http.StatusUnauthorized, "common.unauthorized")
	federated.Do("POST", "/v1/users/"+victim.UserID+"/credentials", body).Expect(t, http.StatusBadRequest) // in another browser
	body["oidc_proof"] = b.proof(t, person("sub-new", ""))
	b.client = federated
	b.do("POST", "/v1/users/"+victim.UserID+"/credentials", body).Expect(t, http.StatusCreated)
	federated.Do("DELETE", path+"/"+id, nil).ExpectError(t, http.StatusForbidden, "auth_m.proof_required")
	federated.Do("DELETE", path+"/"+id, map[string]any{"password": userPassword}).Expect(t, http.StatusOK)
}

// A proof needs another authentication at the provider, and opens no session.
func TestIdentity_ProofIsOfANewAuthentication(t *testing.T) {
	h := start(t)
	advisor := h.User("Advisor")
	h.link(advisor.UserID, "sub-1")
	old := person("sub-1", "")
	old["auth_time"] = h.Clock.Now().Add(-5 * time.Minute).Unix()
	b := h.browser()
	h.expectError(b.back(h.provider.SignIn(b.beginAgain(t), old)), "auth_m.oidc_failed")
	h.expectError(b.back(h.provider.SignIn(b.beginAgain(t), person("nobody", h.email(advisor.UserID)))), "auth_m.oidc_no_account")
	code := b.proof(t, person("sub-1", ""))
	b.do("POST", "/authenticate/oidc", map[string]string{"code": code}).ExpectError(t, http.StatusUnauthorized, "auth_m.oidc_invalid_code")
}

// beginAgain starts a proof and returns the address at the provider.
func (b *browser) beginAgain(t *testing.T) string {
	t.Helper()
	location := b.do("GET", "/authenticate/oidc?again=true&return_to=/profile/security", nil).Expect(t, http.StatusSeeOther).Header.Get("Location")
	if !strings.Contains(location, "max_age=0") || !strings.Contains(location, "prompt=login") {
		t.Errorf("the browser was sent to %s", location)
	}
	return location
}

// proof returns the one-time code of another sign-in.
func (b *browser) proof(t *testing.T, who oidctest.Claims) string {
	t.Helper()
	answer := b.h.provider.SignIn(b.beginAgain(t), who)
	location := b.do("GET", "/authenticate/oidc/callback?"+answer.Encode(), nil).Expect(t, http.StatusSeeOther).Header.Get("Location")
	fragment, ok := strings.CutPrefix(location, baseURL+"/profile/security#")
	members, err := url.ParseQuery(fragment)
	if !ok || err != nil || members.Get("oidc_proof") == "" {
		t.Fatalf("the browser was sent to %s", location)
	}
	return members.Get("oidc_proof")
}

// text reads one text.
func (h *harness) text(statement string) (text string) {
	h.t.Helper()
	if err := h.DB.QueryRow(h.t.Context(), statement).Scan(&text); err != nil {
		h.t.Fatal(err)
	}
	return text
}

// linked is an advisor with an account at the provider that is on trial, and a session that it has opened.
func (h *harness) linked(t *testing.T, subject string) (advisor, federated *servertest.Client) {
	t.Helper()
	advisor = h.User("Advisor")
	b := h.browser()
	code := b.signIn(person(subject, h.email(advisor.UserID))).Get("oidc_link")
	b.client = advisor
	b.do("POST", "/v1/users/"+advisor.UserID+"/identities", map[string]string{"code": code, "password": userPassword}).Expect(t, http.StatusCreated)
	b = h.browser()
	return advisor, b.tokens(b.signIn(person(subject, "", "bank-advisors")))
}

// sent returns the first text of a pattern in the newest message to a user.
func (h *harness) sent(t *testing.T, userID, pattern string) string {
	t.Helper()
	messages := h.Messages(userID, h.email(userID))
	if len(messages) == 0 {
		t.Fatal("there is no message")
	}
	text := messages[len(messages)-1]
	found := regexp.MustCompile(pattern).FindString(text)
	if found == "" {
		t.Fatalf("the message has no %s: %s", pattern, text)
	}
	return found
}

// A new account at the provider is removed by the link to the older address, by a recovery, and by a new password on request, with
// the sessions that it has opened.
func TestIdentity_IsRemovedByItsOwner(t *testing.T) {
	h := start(t)
	const next = "another long password 43"
	change := func(more map[string]any) func(advisor *servertest.Client) {
		return func(advisor *servertest.Client) {
			body := map[string]any{"old_password": userPassword, "password": next}
			maps.Copy(body, more)
			advisor.Do("PUT", "/v1/users/"+advisor.UserID+"/password", body).Expect(t, http.StatusOK)
		}
	}
	for name, c := range map[string]struct {
		do   func(advisor *servertest.Client)
		kept bool
	}{
		"undo": {do: func(advisor *servertest.Client) {
			_, token, _ := strings.Cut(h.sent(t, advisor.UserID, `/undo#[A-Za-z0-9_-]{22}`), "#")
			h.Anonymous().Do("POST", "/authenticate/undo", map[string]any{"token": token}).Expect(t, http.StatusOK)
			h.Anonymous().Do("POST", "/authenticate/undo", map[string]any{"token": token}).ExpectError(t, http.StatusNotFound, "auth_m.undo_invalid")
		}},
		"recovery": {do: func(advisor *servertest.Client) {
			address := h.email(advisor.UserID)
			h.Anonymous().Do("POST", "/v1/users/initiate-recovery", map[string]any{"credential_value": address}).Expect(t, http.StatusOK)
			h.Anonymous().Do("POST", "/v1/users/complete-recovery", map[string]any{"credential_value": address,
				"otp": h.sent(t, advisor.UserID, `\b\d{6}\b`), "password": next}).Expect(t, http.StatusOK)
		}},
		"new password":                   {do: change(nil), kept: true},
		"new password that removes them": {do: change(map[string]any{"remove_new": true})},
	} {
		subject := "sub-" + strings.ReplaceAll(name, " ", "-")
		advisor, federated := h.linked(t, subject)
		federated.Do("GET", "/v1/users/me", nil).Expect(t, http.StatusOK)
		c.do(advisor)
		federated.Do("GET", "/v1/users/me", nil).ExpectError(t, http.StatusUnauthorized, "common.unauthorized")
		if kept := h.count(`SELECT count(*) FROM identities WHERE user_id = $1`, advisor.UserID) == 1; kept != c.kept {
			t.Errorf("after %s, the account is kept: %t", name, kept)
		}
		b := h.browser()
		fragment := b.signIn(person(subject, "", "bank-advisors"))
		if opened := fragment.Get("oidc_code") != ""; opened != c.kept {
			t.Errorf("after %s, the account signs in: %v", name, fragment)
		}
	}
}
