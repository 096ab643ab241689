package app_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

const everyoneMatrix = "/v1/rbac/roles/" + access.Everyone + "/permissions"

// everyoneMay returns the endpoints that everyone may call.
func everyoneMay(t *testing.T, s *servertest.Server) []string {
	t.Helper()
	var matrix struct{ Endpoints []string }
	s.Admin().Do("GET", everyoneMatrix, nil).Expect(t, 200).Into(t, &matrix)
	return matrix.Endpoints
}

// setEveryone replaces what everyone may call.
func setEveryone(t *testing.T, s *servertest.Server, endpoints []string) {
	t.Helper()
	s.Admin().Do("PUT", everyoneMatrix, map[string]any{"endpoints": endpoints}).Expect(t, 200)
}

func without(endpoints []string, key string) []string {
	return slices.DeleteFunc(slices.Clone(endpoints), func(e string) bool { return e == key })
}

// The holders of a role without any grant use their own data by the role Everyone. Everything else is refused with its true reason.
func TestEveryone_UsesOwnData(t *testing.T) {
	s := servertest.Start(t)
	role := s.Admin().Create("/v1/rbac/roles", map[string]any{"name": "Archivist"})
	holder := s.User(role)
	for _, path := range []string{"/v1/users/me", "/v1/profile", "/v1/profile/preferences", "/v1/profile/views", "/v1/notifications",
		"/v1/notifications/unread-count"} {
		holder.Do("GET", path, nil).Expect(t, 200)
	}
	checks := map[string]any{"checks": []any{map[string]any{"rec_type": "customers", "permission": "read"}}}
	if allowed := holder.Do("POST", "/v1/rbac/check", checks).Expect(t, 200).JSON(t)["results"].([]any)[0].(map[string]any)["allowed"]; allowed != false {
		t.Errorf("a role without grants allows reading customers: %v", allowed)
	}
	for _, c := range []struct{ method, path, reason, names string }{
		{"GET", "/v1/customers", "endpoint", `"endpoint":"GET /v1/customers"`},
		{"GET", "/v1/users", "endpoint", `"endpoint":"GET /v1/users"`},
	} {
		answer := holder.Do(c.method, c.path, nil)
		answer.ExpectError(t, 403, "common.rbac_no_rec_access")
		if body := answer.Body; !strings.Contains(body, `"reason":"`+c.reason+`"`) || !strings.Contains(body, c.names) {
			t.Errorf("%s %s: got %s", c.method, c.path, body)
		}
	}
	s.Admin().Create("/v1/rbac/grants", map[string]any{"role_id": role, "endpoint": "POST /v1/customers"})
	if body := holder.Do("POST", "/v1/customers", map[string]any{"last_name": "Nobody"}).Body; !strings.Contains(body, `"reason":"permission"`) ||
		!strings.Contains(body, `"permission":"customers:create"`) {
		t.Errorf("without the permission: %s", body)
	}
	if body := s.User().Do("GET", "/v1/customers", nil).Body; !strings.Contains(body, `"reason":"no_role"`) {
		t.Errorf("without a role: %s", body)
	}
	other := s.User(access.Customer)
	s.Admin().Do("POST", "/v1/customers/"+newCustomer(s.Admin())+"/notify", map[string]any{"text": "Please call us.", "user_ids": []string{other.UserID}}).Expect(t, 200)
	if total := holder.Do("GET", "/v1/notifications?search.user_id="+other.UserID, nil).Expect(t, 200).JSON(t)["total"]; total != float64(0) {
		t.Errorf("the holder reads %v notifications of others", total)
	}
	holder.Do("POST", "/v1/logout", nil).Expect(t, 200)
}

// An endpoint that is taken from Everyone is refused to all people at the next request, whatever their roles, until it is given back.
// Administrators keep it, so that they can give it back.
func TestEveryone_LosesEachGrant(t *testing.T) {
	s := servertest.Start(t)
	customer, advisor, nobody := s.User(access.Customer), s.User(access.Advisor), s.User()
	all := everyoneMay(t, s)
	granted := 0
	for _, e := range s.Table() {
		if !e.HeldByEveryone() {
			continue
		}
		granted++
		if !slices.Contains(all, e.Key()) {
			t.Errorf("%s is not granted to everyone", e.Key())
			continue
		}
		setEveryone(t, s, without(all, e.Key()))
		for _, c := range []*servertest.Client{customer, advisor, nobody} {
			answer := c.Do(e.Method, withUnknownIDs(e.Path), nil)
			answer.ExpectError(t, 403, "common.rbac_no_rec_access")
			if !strings.Contains(answer.Body, `"endpoint":"`+e.Key()+`"`) {
				t.Errorf("%s: got %s", e.Key(), answer.Body)
			}
		}
	}
	if granted < 20 || len(all) != granted {
		t.Errorf("everyone holds %d grants, the table says %d", len(all), granted)
	}
	setEveryone(t, s, without(all, "GET /v1/notifications"))
	s.Admin().Do("GET", "/v1/notifications", nil).Expect(t, 200)
	customer.Do("GET", "/v1/notifications", nil).Expect(t, 403)
	s.Admin().Create("/v1/rbac/grants", map[string]any{"role_id": access.Everyone, "endpoint": "GET /v1/notifications"})
	customer.Do("GET", "/v1/notifications", nil).Expect(t, 200)
	advisor.Do("POST", "/v1/logout", nil).Expect(t, 200)
}

// Open streams end with the grant.
func TestEveryone_StreamsEndWithTheGrant(t *testing.T) {
	s := servertest.Start(t)
	customer := s.User(access.Customer)
	f := followPath(t, s, customer.Token, "/v1/notifications/sse", "")
	f.next()
	setEveryone(t, s, without(everyoneMay(t, s), "GET /v1/notifications/sse"))
	if _, name, data := f.next(); name != "" {
		t.Errorf("got %s %s after the end of the right", name, data)
	}
}

func TestEveryone_LosesAGrantOnEveryNode(t *testing.T) {
	a, b := nodes(t)
	u := a.User(access.Customer)
	all := everyoneMay(t, a)
	for range 3 {
		at(b, u).Do("GET", "/v1/notifications", nil).Expect(t, 200)
		setEveryone(t, a, without(all, "GET /v1/notifications"))
		at(b, u).Do("GET", "/v1/notifications", nil).Expect(t, 403)
		at(a, u).Do("GET", "/v1/notifications", nil).Expect(t, 403)
		setEveryone(t, b, all)
		at(a, u).Do("GET", "/v1/notifications", nil).Expect(t, 200)
	}
}

// Registrants and service accounts do not hold Everyone. They call what their own grants allow: a registrant validates the credential with
// the token of the registration, sees the user and signs out.
func TestEveryone_IsNotHeldByRegistrantsAndServiceAccounts(t *testing.T) {
	s := servertest.Start(t)
	made := s.Keyed().Do("POST", "/v1/users/initiate-registration", registering("petra@example.ch", "eine lange ruhige Nacht")).Expect(t, 201).JSON(t)
	registrant := s.Anonymous()
	registrant.Token, registrant.UserID = made["access_token"].(string), made["user_id"].(string)
	account := s.Admin().Create("/v1/service-accounts", map[string]any{"name": "Nightly", "roles": []string{"Advisor"}})
	var token struct{ Token string }
	s.Admin().Do("POST", "/v1/service-accounts/"+account+"/tokens", map[string]any{"name": "Night"}).Expect(t, 201).Into(t, &token)
	machine := s.Anonymous().With("Authorization", "Bearer "+token.Token)
	setEveryone(t, s, without(everyoneMay(t, s), "POST /v1/logout")) // does not concern registrants
	for _, e := range s.Table() {
		if !e.HeldByEveryone() {
			continue
		}
		if !slices.Contains(e.Roles, access.Registrant) {
			registrant.Do(e.Method, withUnknownIDs(e.Path), nil).ExpectError(t, 403, "common.rbac_no_rec_access")
		}
		machine.Do(e.Method, withUnknownIDs(e.Path), nil).ExpectError(t, 403, "common.rbac_no_rec_access")
	}
	registrant.Do("GET", "/v1/users/me", nil).Expect(t, 200)
	s.Admin().Create("/v1/rbac/grants", map[string]any{"user_id": account, "endpoint": "GET /v1/users/me"})
	machine.Do("GET", "/v1/users/me", nil).Expect(t, 200)
	check := map[string]any{"user_id": account, "checks": []any{map[string]any{"endpoint": "GET /v1/users/me"}, map[string]any{"endpoint": "GET /v1/profile"}}}
	if body := s.Admin().Do("POST", "/v1/rbac/check", check).Expect(t, 200).Body; !strings.Contains(body, `"source":"user"`) || !strings.Contains(body, `"allowed":false`) {
		t.Errorf("got %s", body)
	}
	credential := "/v1/users/" + registrant.UserID + "/credentials/" + made["credential"].(map[string]any)["id"].(string)
	registrant.Do("POST", credential+"/otp", nil)
	registrant.Do("PUT", credential+"/validate", map[string]any{"otp": sentCode(t, s, "petra@example.ch")}).Expect(t, 200)
	registrant.Do("GET", "/v1/profile", nil).Expect(t, 200) // a customer now, with the same token
	disabled := s.User(access.Customer)
	s.Admin().Do("PATCH", "/v1/users/"+disabled.UserID, map[string]any{"status": "disabled"}).Expect(t, 200)
	check["user_id"] = disabled.UserID
	if body := s.Admin().Do("POST", "/v1/rbac/check", check).Expect(t, 200).Body; strings.Contains(body, `"allowed":true`) {
		t.Errorf("a disabled user holds Everyone: %s", body)
	}
}

// Everyone can neither be assigned, unassigned, renamed nor deleted, and holds endpoints only. Administrators alone decide what everyone
// may call.
func TestEveryone_IsFixed(t *testing.T) {
	s := servertest.Start(t)
	user, role := s.User(access.Customer), "/v1/rbac/roles/"+access.Everyone
	manager := s.User(access.Advisor)
	for _, permissions := range []string{"grants", "roles"} {
		s.Admin().Create("/v1/rbac/grants", map[string]any{"user_id": manager.UserID, "rec_type": permissions, "permissions": []string{"create", "update", "delete", "read_all"}})
	}
	for _, key := range []string{"POST /v1/rbac/grants", "DELETE /v1/rbac/grants/{id}", "PUT /v1/rbac/roles/{id}/permissions", "PUT /v1/rbac/roles/{id}", "GET /v1/audit"} {
		s.Admin().Create("/v1/rbac/grants", map[string]any{"user_id": manager.UserID, "endpoint": key})
	}
	var held struct{ Data []struct{ ID string } }
	s.Admin().Do("GET", "/v1/rbac/grants?limit=1&search.role_id="+access.Everyone, nil).Expect(t, 200).Into(t, &held)
	type body = map[string]any
	for _, c := range []struct {
		name         string
		as           *servertest.Client
		method, path string
		body         any
		status       int
		code         string
	}{
		{"delete", s.Admin(), "DELETE", role, nil, 409, "rbac.role_built_in"},
		{"rename", s.Admin(), "PUT", role, body{"name": "Nobody"}, 409, "rbac.role_built_in"},
		{"remove by a review", s.Admin(), "POST", "/v1/rbac/reviews", body{"role_id": access.Everyone, "decision": "remove"}, 409, "rbac.role_built_in"},
		{"assign", s.Admin(), "PUT", "/v1/users/" + user.UserID + "/roles", body{"roles": []string{"Customer", "Everyone"}}, 400, "common.invalid_input"},
		{"assign by id", s.Admin(), "PUT", "/v1/users/" + user.UserID + "/roles", body{"roles": []string{access.Everyone}}, 400, "common.invalid_input"},
		{"invite", s.Admin(), "POST", "/v1/invitations", body{"email": "new@example.ch", "display_name": "Nina", "language": "de", "roles": []string{"Everyone"}}, 400, "common.invalid_input"},
		{"a service account", s.Admin(), "POST", "/v1/service-accounts", body{"name": "Night", "roles": []string{"everyone"}}, 400, "common.invalid_input"},
		{"a type", s.Admin(), "POST", "/v1/rbac/grants", body{"role_id": access.Everyone, "rec_type": "customers", "permissions": []string{"read"}}, 400, "common.invalid_input"},
		{"a record", s.Admin(), "POST", "/v1/rbac/grants", body{"role_id": access.Everyone, "rec_type": "customers", "rec_id": newCustomer(s.Admin()),
			"permissions": []string{"read"}}, 400, "common.invalid_input"},
		{"types of the matrix", s.Admin(), "PUT", everyoneMatrix, body{"types": []body{{"rec_type": "tasks", "permissions": []string{"read_all"}}}}, 400, "common.invalid_input"},
		{"a grant by another", manager, "POST", "/v1/rbac/grants", body{"role_id": access.Everyone, "endpoint": "GET /v1/audit"}, 403, "rbac.rights_not_held"},
		{"the matrix by another", manager, "PUT", everyoneMatrix, body{"endpoints": []string{"GET /v1/audit"}}, 403, "rbac.rights_not_held"},
		{"taking by another", manager, "DELETE", "/v1/rbac/grants/" + held.Data[0].ID, nil, 403, "rbac.rights_not_held"},
		{"a description by another", manager, "PUT", role, body{"description": "x"}, 403, "rbac.rights_not_held"},
	} {
		t.Run(c.name, func(t *testing.T) { c.as.Do(c.method, c.path, c.body).ExpectError(t, c.status, c.code) })
	}
	s.Admin().Do("PUT", role, body{"description": "All of us."}).Expect(t, 200)
	s.Admin().Do("PUT", everyoneMatrix, body{"types": []body{}}).Expect(t, 200)
	me := user.Do("GET", "/v1/users/me", nil).Expect(t, 200).JSON(t)
	if roles := me["roles"].([]any); len(roles) != 1 || roles[0] != "Customer" {
		t.Errorf("the user's roles are %v: those that were given", roles)
	}
}

// All lists that say who holds what count everyone, and a use of such a grant is noted.
func TestEveryone_IsListedAndExplained(t *testing.T) {
	s := servertest.Start(t)
	customer := s.User(access.Customer)
	s.User(access.Registrant)
	s.Admin().Create("/v1/service-accounts", map[string]any{"name": "Night"})
	var matrix struct{ Holders int }
	s.Admin().Do("GET", everyoneMatrix, nil).Expect(t, 200).Into(t, &matrix)
	if total := s.Admin().Do("GET", "/v1/users?role=Everyone", nil).Expect(t, 200).JSON(t)["total"]; matrix.Holders != 2 || total != 2.0 {
		t.Errorf("the matrix counts %d holders, the list %v, want the administrator and the customer", matrix.Holders, total)
	}
	id := idOfNotification(t, s, customer)
	explained := s.Admin().Do("GET", "/v1/rbac/explain?type=notifications&id="+id+"&search.user_id="+customer.UserID, nil).Expect(t, 200).Body
	if !strings.Contains(explained, `"calls":true`) {
		t.Errorf("the recipient may call the endpoint by Everyone: %s", explained)
	}
	decided := customer.Do("POST", "/v1/rbac/check", map[string]any{"checks": []any{map[string]any{"endpoint": "GET /v1/notifications/{notification_id}"}}}).Expect(t, 200).Body
	if !strings.Contains(decided, `"allowed":true,"source":"role","source_id":"`+access.Everyone+`"`) {
		t.Errorf("got %s", decided)
	}
	customer.Do("GET", "/v1/notifications", nil).Expect(t, 200)
	used := s.Admin().Do("GET", "/v1/rbac/review?search.kind=endpoint&search.role_name=Everyone&search.endpoint="+
		strings.ReplaceAll("GET /v1/notifications", " ", "%20"), nil).Expect(t, 200).Body
	if !strings.Contains(used, `"total":1`) || strings.Contains(used, `"last_used_at":null`) {
		t.Errorf("the review has %s", used)
	}
	setEveryone(t, s, without(everyoneMay(t, s), "GET /v1/notifications/{notification_id}"))
	explained = s.Admin().Do("GET", "/v1/rbac/explain?type=notifications&id="+id+"&search.user_id="+customer.UserID, nil).Expect(t, 200).Body
	if !strings.Contains(explained, `"calls":false`) {
		t.Errorf("nobody may call the endpoint: %s", explained)
	}
}

// idOfNotification sends a test notification to a user and returns its id in their list.
func idOfNotification(t *testing.T, s *servertest.Server, user *servertest.Client) string {
	t.Helper()
	idOfEvent(t, s, user.UserID)
	var page struct{ Data []struct{ ID string } }
	user.Do("GET", "/v1/notifications?sort=-created_at", nil).Expect(t, 200).Into(t, &page)
	return page.Data[0].ID
}

// Service accounts may keep what they could do to people: what everyone may call is no right that they lack.
func TestEveryone_IsNoRightThatIsCompared(t *testing.T) {
	s := servertest.Start(t)
	account := s.Admin().Create("/v1/service-accounts", map[string]any{"name": "Clerk", "roles": []string{"Advisor"}})
	for _, in := range []map[string]any{{"rec_type": "users", "permissions": []string{"update", "read_all"}}, {"endpoint": "PATCH /v1/users/{id}"},
		{"rec_type": "credentials", "permissions": []string{"read_all"}}} {
		in["user_id"] = account
		s.Admin().Create("/v1/rbac/grants", in)
	}
	var token struct{ Token string }
	s.Admin().Do("POST", "/v1/service-accounts/"+account+"/tokens", map[string]any{"name": "Night"}).Expect(t, 201).Into(t, &token)
	machine := s.Anonymous().With("Authorization", "Bearer "+token.Token)
	machine.Do("PATCH", "/v1/users/"+s.User().UserID, map[string]any{"language": "fr"}).Expect(t, http.StatusOK)
	machine.Do("PATCH", "/v1/users/"+store.NewID(), map[string]any{"language": "fr"}).Expect(t, http.StatusNotFound)
}
