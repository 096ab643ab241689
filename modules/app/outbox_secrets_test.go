package app_test

import (
	"regexp"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/servertest"
)

// The link that removes a new way to sign in is masked like a code, and in no export.
func TestOutbox_MasksUndoLinks(t *testing.T) {
	s := servertest.Start(t)
	admin, user := s.Admin(), s.User(access.Customer)
	own := "/v1/users/" + user.UserID
	user.Do("POST", own+"/credentials", map[string]any{"credential_type": "username", "credential_value": "anna.keller", "password": userPassword}).Expect(t, 201)
	path := "/v1/notifications/deliveries?search.user_id=" + user.UserID
	link := undoLink.FindString(admin.Do("GET", path, nil).Expect(t, 200).Body)
	if link == "" {
		t.Fatal("no message has the link")
	}
	if exported := user.Do("GET", own+"/export", nil).Expect(t, 200).Body; strings.Contains(exported, link) || !strings.Contains(exported, "anna.keller") {
		t.Errorf("the export of the user: %s", exported)
	}
	s.Clock.Advance(endpoint.FreshFor)
	if got := admin.Do("GET", path, nil).Expect(t, 200).Body; strings.Contains(got, link) || !strings.Contains(got, `"masked":true`) {
		t.Errorf("without a recent authentication, an administrator reads %s", got)
	}
}

// Codes in the local outbox are shown to people who have authenticated recently, and to no program.
func TestOutbox_MasksCodes(t *testing.T) {
	s := servertest.Start(t)
	admin := s.SignIn(servertest.AdminEmail, servertest.AdminPassword)
	user := s.User(access.Customer)
	admin.Do("POST", "/v1/users/"+user.UserID+"/credentials", map[string]any{"credential_type": "email", "credential_value": "second@example.ch"}).Expect(t, 201)
	account := admin.Do("POST", "/v1/service-accounts", map[string]any{"name": "Outbox"}).Expect(t, 201).JSON(t)["id"].(string)
	role := admin.Create("/v1/rbac/roles", map[string]any{"name": "Outbox reader"})
	for _, grant := range []map[string]any{{"rec_type": "deliveries", "permissions": []string{"read_all"}}, {"endpoint": "GET /v1/notifications/deliveries"}} {
		grant["role_id"] = role
		admin.Do("POST", "/v1/rbac/grants", grant).Expect(t, 201)
	}
	admin.Do("PUT", "/v1/users/"+account+"/roles", map[string]any{"roles": []string{role}}).Expect(t, 200)
	token := admin.Do("POST", "/v1/service-accounts/"+account+"/tokens", map[string]any{"name": "one", "expires_in_days": 1}).Expect(t, 201).JSON(t)["token"].(string)

	const path = "/v1/notifications/deliveries?search.to=second@example.ch"
	code := regexp.MustCompile(`\b\d{6}\b`)
	fresh := admin.Do("GET", path, nil).Expect(t, 200).Body
	found := code.FindString(fresh)
	if found == "" || strings.Contains(fresh, `"masked"`) {
		t.Fatalf("a person with a recent authentication reads %s", fresh)
	}
	hidden := func(who string, c *servertest.Client) {
		for _, accept := range []string{"application/json", "text/csv"} {
			got := c.With("Accept", accept).Do("GET", path, nil).Expect(t, 200)
			if strings.Contains(got.Body, found) || !strings.Contains(got.Body, "********") {
				t.Errorf("%s reads %s", who, got.Body)
			}
		}
	}
	hidden("a service account", s.Anonymous().With("Authorization", "Bearer "+token))
	s.Clock.Advance(endpoint.FreshFor)
	hidden("a session without a recent authentication", admin)
	again := s.SignIn(servertest.AdminEmail, servertest.AdminPassword)
	if got := again.Do("GET", path, nil).Expect(t, 200).Body; !strings.Contains(got, found) {
		t.Errorf("after signing in again, a person reads %s", got)
	}
}
