package app_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

// Callers who may change a record but not read it do not give the right to read it, to themselves or to others. With the right they
// may, and so may the creator.
func TestGivenRights_NobodyGivesARelationThatTheyDoNotHold(t *testing.T) {
	s := servertest.Start(t)
	admin, owner := s.Admin(), s.User(access.Advisor)
	customer := customerOf(t, s)
	chat := owner.Create("/v1/chats", map[string]any{"participants": []string{s.User(access.Customer).UserID, s.User(access.Customer).UserID}})
	task := owner.Create("/v1/customers/"+customer+"/tasks", map[string]any{"title": "Sign", "category": "sign"})
	persona := owner.Create("/v1/personas", map[string]any{"first_name": "Vreni", "last_name": "Muster", "date_of_birth": "1980-02-29"})
	for name, c := range map[string]struct {
		recType, record, add, member, read string // the address that adds a user, the member of its body, and the one that reads the record
	}{
		"chat":    {"chats", chat, "/v1/chats/{id}/participants", "userId", "/v1/chats/{id}/messages"},
		"task":    {"tasks", task, "/v1/customers/{customer}/tasks/{id}/assignees", "user_id", "/v1/customers/{customer}/tasks/{id}"},
		"persona": {"personas", persona, "/v1/personas/{id}/users", "user_id", "/v1/personas/{id}"},
	} {
		t.Run(name, func(t *testing.T) {
			path := func(pattern string) string {
				return strings.NewReplacer("{id}", c.record, "{customer}", customer).Replace(pattern)
			}
			role := admin.Create("/v1/rbac/roles", map[string]any{"name": "Changes " + name})
			for _, right := range []map[string]any{{"rec_type": c.recType, "permissions": []string{"update"}},
				{"endpoint": rowOf(t, s, "POST", c.add)}, {"endpoint": rowOf(t, s, "GET", c.read)}} {
				right["role_id"] = role
				grant(t, s, right)
			}
			add := func(by *servertest.Client, user string) servertest.Response {
				return by.Do("POST", path(c.add), map[string]any{c.member: user})
			}
			clerk, friend := s.User(role), s.User(access.Customer)
			for _, user := range []string{clerk.UserID, friend.UserID} {
				add(clerk, user).ExpectError(t, http.StatusForbidden, "common.rbac_no_rec_access")
			}
			clerk.Do("GET", path(c.read), nil).Expect(t, http.StatusForbidden)
			friend.Do("GET", path(c.read), nil).Expect(t, http.StatusForbidden)
			add(owner, friend.UserID).Expect(t, http.StatusCreated)
			grant(t, s, map[string]any{"role_id": role, "rec_type": c.recType, "permissions": []string{"read"}})
			add(clerk, s.User(access.Customer).UserID).Expect(t, http.StatusCreated)
		})
	}
	// Staff who confirm a link for another user give the right to read, too.
	pending := s.User(access.Customer)
	mine := s.User(access.Customer)
	own := mine.Create("/v1/personas", map[string]any{"first_name": "Beat", "last_name": "Muster", "date_of_birth": "1980-02-28"})
	mine.Do("POST", "/v1/personas/"+own+"/users", map[string]any{"user_id": pending.UserID}).Expect(t, http.StatusCreated)
	role := admin.Create("/v1/rbac/roles", map[string]any{"name": "Confirms"})
	grant(t, s, map[string]any{"role_id": role, "rec_type": "personas", "permissions": []string{"update"}})
	grant(t, s, map[string]any{"role_id": role, "endpoint": "POST /v1/personas/{persona_id}/users/{user_id}/accept"})
	accept := "/v1/personas/" + own + "/users/" + pending.UserID + "/accept"
	s.User(role).Do("POST", accept, nil).ExpectError(t, http.StatusForbidden, "common.rbac_no_rec_access")
	pending.Do("POST", accept, nil).Expect(t, http.StatusOK)
}

// The local outbox shows a code to those who hold every right of its recipient. Another reader could sign in as the recipient.
func TestGivenRights_TheOutboxHidesCodesOfUsersWhoHoldMore(t *testing.T) {
	s := servertest.Start(t)
	admin := s.SignIn(servertest.AdminEmail, servertest.AdminPassword)
	role := admin.Create("/v1/rbac/roles", map[string]any{"name": "Outbox"})
	for _, right := range []map[string]any{{"rec_type": "deliveries", "permissions": []string{"read_all"}}, {"endpoint": "GET /v1/notifications/deliveries"},
		{"rec_type": "users", "permissions": []string{"create"}}, {"endpoint": "POST /v1/invitations"}} {
		right["role_id"] = role
		grant(t, s, right)
	}
	// Each of them gets a code to confirm a further address.
	address := map[string]string{}
	for name, user := range map[string]string{"administrator": s.User(access.Administrator).UserID, "advisor": s.User(access.Advisor).UserID, "customer": s.User(access.Customer).UserID} {
		address[name] = name + "@second.example"
		admin.Do("POST", "/v1/users/"+user+"/credentials", map[string]any{"credential_type": "email", "credential_value": address[name]}).Expect(t, 201)
	}
	address["invited administrator"] = "invited@second.example"
	admin.Create("/v1/invitations", map[string]any{"email": address["invited administrator"], "roles": []string{"Administrator"}})
	secret := regexp.MustCompile(`\b\d{6}\b|#`)
	shown := func(c *servertest.Client, name string) bool {
		t.Helper()
		var page struct{ Data []struct{ Text string } }
		c.Do("GET", "/v1/notifications/deliveries?search.to="+address[name], nil).Expect(t, 200).Into(t, &page)
		if len(page.Data) != 1 {
			t.Fatalf("%d messages to the %s", len(page.Data), name)
		}
		return secret.MatchString(page.Data[0].Text)
	}
	for caller, c := range map[string]struct {
		client *servertest.Client
		sees   string
	}{
		"clerk":            {s.User(role), ""},
		"customer's clerk": {s.User(role, access.Customer), "customer"},
		"advisor's clerk":  {s.User(role, access.Advisor), "customer advisor"},
		"administrator":    {admin, "customer advisor administrator invited administrator"},
	} {
		for name := range address {
			if got, want := shown(c.client, name), strings.Contains(c.sees, name); got != want {
				t.Errorf("the %s sees the secret for the %s: %t", caller, name, got)
			}
		}
	}
}

// A webhook sends what its account may read: callers set its address only with every right of the account.
func TestGivenRights_WebhooksOfAccountsThatHoldMore(t *testing.T) {
	s := servertest.Start(t)
	admin := s.SignIn(servertest.AdminEmail, servertest.AdminPassword)
	account := func(roles ...string) string {
		return admin.Create("/v1/service-accounts", map[string]any{"name": "Feed of " + strings.Join(roles, " "), "roles": roles})
	}
	role := admin.Create("/v1/rbac/roles", map[string]any{"name": "Integrator"})
	for _, right := range []map[string]any{{"rec_type": "webhooks", "permissions": []string{"create", "read_all", "update"}},
		{"rec_type": "service_accounts", "permissions": []string{"update"}}, {"endpoint": "POST /v1/webhooks"}, {"endpoint": "PATCH /v1/webhooks/{id}"},
		{"endpoint": "POST /v1/webhooks/{id}/secret"}} {
		right["role_id"] = role
		grant(t, s, right)
	}
	integrator := s.User(role)
	strong, weak := account("Advisor"), account()
	body := func(owner string) map[string]any {
		return map[string]any{"url": "https://receiver.example/hook", "types": []string{"customers.*"}, "account_id": owner}
	}
	existing := admin.Create("/v1/webhooks", body(strong))
	for _, c := range []struct {
		method, path string
		body         any
	}{
		{"POST", "/v1/webhooks", body(strong)},
		{"PATCH", "/v1/webhooks/" + existing, map[string]any{"url": "https://thief.example/hook"}},
		{"PATCH", "/v1/webhooks/" + existing, map[string]any{"include_record": true}},
		{"POST", "/v1/webhooks/" + existing + "/secret", map[string]any{}},
	} {
		integrator.Do(c.method, c.path, c.body).ExpectError(t, http.StatusForbidden, "rbac.grant_not_held")
	}
	own := integrator.Create("/v1/webhooks", body(weak))
	integrator.Do("PATCH", "/v1/webhooks/"+own, map[string]any{"url": "https://receiver.example/other"}).Expect(t, 200)
	admin.Do("PATCH", "/v1/webhooks/"+existing, map[string]any{"url": "https://receiver.example/other"}).Expect(t, 200)
}
