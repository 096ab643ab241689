package app_test

import (
	"cmp"
	"net/http"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store"
)

// attack is an operation on a user.
type attack struct {
	needs        string // permissions besides the grant on the endpoint
	method, path string // with {user} for the id of the user
	body         func() map[string]any
	other        func(user string) string // the id of {other}
	status       int                      // of the answer to an advisor with the permissions, for a customer; zero: 200
}

// Callers who may do something with other users may not do it with users who hold more than they do, whatever the operation. An
// advisor with the permission may do it with a customer, and an administrator with all users.
func TestSubjects_NobodyReachesAUserWhoHoldsMore(t *testing.T) {
	s := servertest.Start(t, func(o *settings.Settings) {
		o.Auth.OIDC = settings.OIDC{Issuer: "https://login.bank.test", ClientID: "kontor", ClientSecret: "a-secret-of-the-client", Scopes: []string{"openid"}}
		o.Server.BaseURL = "http://bank.test"
	})
	username := func() map[string]any {
		return map[string]any{"credential_type": "username", "credential_value": "u" + strings.ReplaceAll(store.NewID(), "-", "")}
	}
	credential := func(user string) string { return s.Admin().Create("/v1/users/"+user+"/credentials", username()) }
	unknown := func(string) string { return store.NewID() }
	body := func(name string, value any) func() map[string]any {
		return func() map[string]any { return map[string]any{name: value} }
	}
	address := func() map[string]any {
		return map[string]any{"credential_type": "email", "credential_value": store.NewID() + "@evil.example"}
	}
	attacks := []attack{
		{"identities:create", "POST", "/v1/users/{user}/identities", func() map[string]any { return map[string]any{"subject": store.NewID()} }, nil, 409}, // a customer is no staff
		{"credentials:create", "POST", "/v1/users/{user}/credentials", address, nil, 201},
		{"credentials:create", "POST", "/v1/users/{user}/credentials", username, nil, 201},
		{"credentials:update", "POST", "/v1/users/{user}/credentials/{other}/otp", nil, unknown, 404},
		{"credentials:update", "PUT", "/v1/users/{user}/credentials/{other}/validate", body("otp", "000000"), unknown, 404},
		{"credentials:delete", "DELETE", "/v1/users/credentials/{other}", nil, credential, 0},
		{"factors:delete", "DELETE", "/v1/users/{user}/factors/{other}", nil, unknown, 404},
		{"users:update", "PATCH", "/v1/users/{user}", body("status", "disabled"), nil, 0},
		{"users:update", "PATCH", "/v1/users/{user}", body("status", "active"), nil, 0},
		{"users:update", "PATCH", "/v1/users/{USER}", body("language", "fr"), nil, 0}, // the id in capitals
		{"users:update", "PUT", "/v1/users/{user}/roles", body("roles", []string{"Customer"}), nil, 0},
		{"users:update", "PUT", "/v1/users/{user}/password", body("password", "a chosen long phrase 77"), nil, 403}, // administrators only
		{"users:read_all users:update", "GET", "/v1/users/{user}/export", nil, nil, 0},
		{"users:delete", "POST", "/v1/users/{user}/erasure", body("reason", "request"), nil, 0},
	}
	specialist := s.Admin().Create("/v1/rbac/roles", map[string]any{"name": "Specialist"})
	given := map[string]bool{}
	for _, a := range attacks {
		for _, right := range append(strings.Fields(a.needs), rowOf(t, s, a.method, a.path)) {
			if given[right] {
				continue
			}
			given[right] = true
			if recType, permission, ok := strings.Cut(right, ":"); ok {
				grant(t, s, map[string]any{"role_id": specialist, "rec_type": recType, "permissions": []string{permission}})
			} else {
				grant(t, s, map[string]any{"role_id": specialist, "endpoint": right})
			}
		}
	}
	target, stronger := s.User(access.Administrator), s.User(access.Customer)
	grant(t, s, map[string]any{"user_id": stronger.UserID, "rec_type": "customers", "rec_id": customerOf(t, s), "permissions": []string{"delete"}})
	caller, admin := s.User(access.Advisor, specialist), s.Admin()
	for _, a := range attacks {
		t.Run(a.method+" "+a.path, func(t *testing.T) {
			send := func(c *servertest.Client, user string) servertest.Response {
				path := strings.NewReplacer("{user}", user, "{USER}", strings.ToUpper(user)).Replace(a.path)
				if a.other != nil {
					path = strings.ReplaceAll(path, "{other}", a.other(user))
				}
				if a.body == nil {
					return c.Do(a.method, path, nil)
				}
				return c.Do(a.method, path, a.body())
			}
			send(caller, target.UserID).ExpectError(t, http.StatusForbidden, "rbac.rights_not_held")
			refused := send(caller, stronger.UserID)
			refused.ExpectError(t, http.StatusForbidden, "rbac.rights_not_held")
			if strings.Contains(refused.Body, "rights\":") {
				t.Errorf("a caller who may not read grants learns those of others: %s", refused.Body)
			}
			if answer := send(caller, s.User(access.Customer).UserID); answer.Status != cmp.Or(a.status, http.StatusOK) {
				t.Errorf("for a customer: got %d %s, want %d", answer.Status, answer.Body, cmp.Or(a.status, http.StatusOK))
			}
			if answer := send(admin, s.User(access.Advisor).UserID); answer.Status == http.StatusForbidden {
				t.Errorf("an administrator, for an advisor: got %s", answer.Body)
			}
		})
	}
	// Callers who may do it with no user do not learn who holds more.
	plain := s.User(access.Customer)
	for _, user := range []string{target.UserID, s.User().UserID} {
		plain.Do("PATCH", "/v1/users/"+user, map[string]any{"language": "fr"}).ExpectError(t, http.StatusForbidden, "common.rbac_no_rec_access")
	}
}

// No caller changes or takes away the rights of a role that holds more, nor a role that the settings name.
func TestSubjects_RolesAndGrants(t *testing.T) {
	s := servertest.Start(t, func(o *settings.Settings) {
		o.Auth.MFA.RequiredRoles = []string{"Cashiers"}
		o.Auth.OIDC.RoleMap = []settings.MappedRole{{Claim: "treasury", Role: "Treasury"}}
	})
	admin := s.Admin()
	role := func(name string) string { return admin.Create("/v1/rbac/roles", map[string]any{"name": name}) }
	manager, weak, strong, cashiers := role("Manager"), role("Weak"), role("Strong"), role("Cashiers")
	for _, g := range []map[string]any{
		{"rec_type": "roles", "permissions": []string{"create", "read_all", "update", "delete"}}, {"rec_type": "grants", "permissions": []string{"create", "read_all", "delete"}},
		{"rec_type": "users", "permissions": []string{"create", "read_all"}}, {"rec_type": "payers", "permissions": []string{"read"}},
		{"endpoint": "POST /v1/rbac/roles"}, {"endpoint": "PUT /v1/rbac/roles/{id}"}, {"endpoint": "DELETE /v1/rbac/roles/{id}"},
		{"endpoint": "PUT /v1/rbac/roles/{id}/permissions"}, {"endpoint": "DELETE /v1/rbac/grants/{id}"}, {"endpoint": "POST /v1/rbac/grants"},
		{"endpoint": "DELETE /v1/invitations/{id}"}, {"endpoint": "POST /v1/invitations/{id}/resend"}, {"endpoint": "POST /v1/invitations"},
	} {
		g["role_id"] = manager
		grant(t, s, g)
	}
	grant(t, s, map[string]any{"role_id": strong, "rec_type": "audit", "permissions": []string{"read"}})
	weakGrant := grant(t, s, map[string]any{"role_id": weak, "rec_type": "payers", "permissions": []string{"read"}})
	strongPayers := grant(t, s, map[string]any{"role_id": strong, "rec_type": "payers", "permissions": []string{"read"}})
	person := s.User()
	toPerson := grant(t, s, map[string]any{"user_id": person.UserID, "endpoint": "GET /v1/audit"})
	m := s.User(manager)
	refused := func(code, method, path string, body any) {
		t.Helper()
		m.Do(method, path, body).ExpectError(t, http.StatusForbidden, code)
	}
	one := func(id string) string { return "/v1/rbac/roles/" + id }
	refused("rbac.rights_not_held", "PUT", one(strong), map[string]any{"name": "Nothing"})
	refused("rbac.rights_not_held", "DELETE", one(strong), nil)
	refused("rbac.rights_not_held", "PUT", one(access.Administrator), map[string]any{"description": "Does nothing."})
	refused("rbac.rights_not_held", "DELETE", "/v1/rbac/grants/"+strongPayers, nil)
	refused("rbac.rights_not_held", "DELETE", "/v1/rbac/grants/"+toPerson, nil)
	refused("rbac.rights_not_held", "PUT", one(strong)+"/permissions", map[string]any{"types": []any{map[string]any{"rec_type": "audit", "permissions": []string{"read"}}}})
	if answer := m.Do("PUT", one(strong), map[string]any{"name": "Nothing"}); !strings.Contains(answer.Body, `"audit:read"`) {
		t.Errorf("a caller who may read all grants learns nothing: %s", answer.Body)
	}
	for _, name := range []string{"Treasury", "TREASURY", "cashiers"} {
		if name != "cashiers" { // it exists
			refused("rbac.role_in_settings", "POST", "/v1/rbac/roles", map[string]any{"name": name})
		}
		refused("rbac.role_in_settings", "PUT", one(weak), map[string]any{"name": name})
	}
	refused("rbac.role_in_settings", "PUT", one(cashiers), map[string]any{"name": "Tellers"})
	refused("rbac.role_in_settings", "DELETE", one(cashiers), nil)

	invited := admin.Create("/v1/invitations", map[string]any{"email": "boss@example.ch", "roles": []string{"Administrator"}})
	refused("rbac.rights_not_held", "DELETE", "/v1/invitations/"+invited, nil)
	refused("rbac.rights_not_held", "POST", "/v1/invitations/"+invited+"/resend", nil)
	clerk := admin.Create("/v1/invitations", map[string]any{"email": "clerk@example.ch", "roles": []string{"Weak"}})

	m.Do("POST", "/v1/invitations/"+clerk+"/resend", nil).Expect(t, 200)
	m.Do("DELETE", "/v1/invitations/"+clerk, nil).Expect(t, 200)
	m.Do("PUT", one(weak), map[string]any{"name": "Weaker"}).Expect(t, 200)
	m.Do("PUT", one(cashiers), map[string]any{"description": "Handle cash."}).Expect(t, 200)
	m.Do("DELETE", "/v1/rbac/grants/"+weakGrant, nil).Expect(t, 200)
	m.Do("DELETE", one(weak), nil).Expect(t, 200)
	own := m.Do("POST", "/v1/rbac/grants", map[string]any{"role_id": strong, "rec_type": "users", "permissions": []string{"read_all"}}).Expect(t, 201).JSON(t)["id"].(string)
	m.Do("DELETE", "/v1/rbac/grants/"+own, nil).Expect(t, 200) // what one has given
	admin.Do("PUT", one(cashiers), map[string]any{"name": "Tellers"}).Expect(t, 200)
	admin.Do("POST", "/v1/rbac/roles", map[string]any{"name": "Treasury"}).Expect(t, 201)
	admin.Do("DELETE", one(strong), nil).Expect(t, 200)
}

// Every operation on users, roles and grants has a decision, and this list names those without a comparison of rights.
func TestTable_StatesWhoseRightsAreCompared(t *testing.T) {
	s := servertest.Start(t)
	self := "auth.reauthenticate auth.reauthenticate_options factors.enrol factors.confirm factors.rename"
	exempt := "users.invitations.create service_accounts.create rbac.roles.create rbac.roles.permissions.set rbac.grants.create " +
		"personas.users.add personas.users.remove personas.users.accept chats.create chats.write_to_bank chats.add_participants " +
		"chats.remove_participant inbox.update inbox.answer inbox.notes.add " +
		"tasks.create tasks.assign tasks.unassign tasks.part customers.notify rbac.check rbac.record_types.create rbac.record_types.delete rbac.reviews.create " +
		"authzen.evaluation authzen.evaluations authzen.search.subject authzen.search.resource authzen.search.action auth.create_key auth.revoke_key " +
		"notifications.deliveries notifications.retry_delivery webhooks.create webhooks.update webhooks.delete webhooks.rotate_secret " +
		"webhooks.test webhooks.try webhooks.replay webhooks.replay_delivery screening.load screening.drop screening.check"
	compared := 0
	other := s.User(access.Customer)
	for _, e := range s.Table() {
		listed := func(names string) bool { return strings.Contains(" "+names+" ", " "+e.Name+" ") }
		switch e.Subject.Kind() {
		case access.SubjectUndecided:
			if e.NeedsSubject() {
				t.Errorf("%s: no decision", e.Key())
			}
		case access.SubjectSelf:
			if !listed(self) {
				t.Errorf("%s: users may do it on themselves only", e.Key())
			}
			path := withUnknownIDs(strings.Replace(e.Path, "{id}", other.UserID, 1))
			if answer := s.Admin().Do(e.Method, path, map[string]any{"type": "totp", "name": "App", "password": servertest.AdminPassword, "code": "123456"}); answer.Status < 400 {
				t.Errorf("%s: an administrator did it for another user: %d %s", e.Key(), answer.Status, answer.Body)
			}
		case access.SubjectExempt:
			if !listed(exempt) {
				t.Errorf("%s: rights are not compared: %s", e.Key(), e.Subject.Reason())
			}
		default:
			compared++
		}
	}
	if compared < 20 {
		t.Errorf("%d rows compare rights", compared)
	}
	// The built-in roles stay in their order: an advisor can help a customer, and a customer a registrant.
	policy := s.Policy.Load()
	holder := func(role string) *access.Caller { return access.Caller{Roles: []string{role}}.WithPolicy(policy) }
	if lacking := holder(access.Advisor).Lacking(holder(access.Customer)); len(lacking) > 0 {
		t.Errorf("advisors lack rights of customers: %q", lacking)
	}
	if lacking := holder(access.Advisor).Lacking(holder(access.Registrant)); len(lacking) > 0 {
		t.Errorf("advisors lack rights of registrants: %q", lacking)
	}
}

// rowOf returns the key of the endpoint that a path of an attack means.
func rowOf(t *testing.T, s *servertest.Server, method, path string) string {
	t.Helper()
	shape := func(p string) string { return pathName.ReplaceAllString(p, "*") }
	for _, e := range s.Table() {
		if e.Method == method && shape(e.Path) == shape(path) {
			return e.Key()
		}
	}
	t.Fatalf("no endpoint %s %s", method, path)
	return ""
}

// customerOf creates a customer and returns its id.
func customerOf(t *testing.T, s *servertest.Server) (id string) {
	t.Helper()
	return s.Admin().Create("/v1/customers", map[string]any{"first_name": "Vreni", "last_name": "Muster", "email": "vreni@example.ch"})
}

// grant creates a grant as an administrator and returns its id.
func grant(t *testing.T, s *servertest.Server, in map[string]any) (id string) {
	t.Helper()
	return s.Admin().Create("/v1/rbac/grants", in)
}

// Callers may not do with the persona of a user who holds more what they may not do with that user.
func TestSubjects_PersonasHoldWhatTheirUsersHold(t *testing.T) {
	s := servertest.Start(t)
	role := s.Admin().Create("/v1/rbac/roles", map[string]any{"name": "Archivist"})
	for _, g := range []map[string]any{
		{"rec_type": "personas", "permissions": []string{"read", "read_all", "update", "delete"}},
		{"endpoint": "GET /v1/personas/{persona_id}/export"}, {"endpoint": "GET /v1/personas/{persona_id}/report"},
		{"endpoint": "POST /v1/personas/{persona_id}/erasure"},
	} {
		g["role_id"] = role
		grant(t, s, g)
	}
	clerk := s.User(role, access.Customer)
	for holder, code := range map[string]string{access.Administrator: "rbac.rights_not_held", access.Customer: ""} {
		one := s.User(holder)
		persona := one.Create("/v1/personas", map[string]any{"first_name": "Vera", "last_name": "Muster", "date_of_birth": "1980-01-01"})
		s.Admin().Do("POST", "/v1/personas/"+persona+"/users", map[string]any{"user_id": one.UserID})
		one.Do("POST", "/v1/personas/"+persona+"/users/"+one.UserID+"/accept", nil)
		for _, answer := range []servertest.Response{
			clerk.Do("GET", "/v1/personas/"+persona+"/export", nil), clerk.Do("GET", "/v1/personas/"+persona+"/report", nil),
			clerk.Do("POST", "/v1/personas/"+persona+"/erasure", map[string]any{"reason": "request"}),
		} {
			if code != "" {
				answer.ExpectError(t, http.StatusForbidden, code)
			} else {
				answer.Expect(t, http.StatusOK)
			}
		}
	}
}
