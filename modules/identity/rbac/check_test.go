package rbac_test

import (
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/store"
)

// check checks one permission and returns source and source id, or "no".
func (h *harness) check(user string, c object, extra ...string) string {
	h.t.Helper()
	body := object{"checks": []object{c}}
	for i := 0; i < len(extra); i += 2 {
		body[extra[i]] = extra[i+1]
	}
	result := h.want(200, "", user, "POST", "/v1/rbac/check", body).body["results"].([]any)[0].(map[string]any)
	missing := result["missing"] == true
	delete(result, "missing")
	if len(result) != 3 {
		h.t.Fatalf("result is %v", result)
	}
	if result["allowed"] != true {
		if result["source"] != "" || result["source_id"] != store.NilID {
			h.t.Fatalf("denied with %v", result)
		}
		if missing {
			return "missing"
		}
		return "no"
	}
	return result["source"].(string) + " " + result["source_id"].(string)
}

func TestCheck_NamesTheFirstSource(t *testing.T) {
	h := newHarness(t)
	role := h.role("Helpers")
	user := h.user(access.Customer, role)
	own, foreign := h.persona(user), h.persona(h.root)
	read := func(id string) object { return object{"rec_type": "personas", "permission": "read", "rec_id": id} }
	expect := func(want string, c object) {
		t.Helper()
		if got := h.check(user, c); got != want {
			t.Errorf("%v: got %s, want %s", c, got, want)
		}
	}
	expect("no", read(foreign))
	h.grant(object{"user_id": user, "rec_type": "personas", "permissions": []string{"read"}})
	expect("user "+user, read(foreign))
	h.grant(object{"role_id": role, "rec_type": "personas", "permissions": []string{"read_all"}})
	expect("role "+role, read(foreign))
	h.grant(object{"role_id": access.Customer, "rec_type": "personas", "permissions": []string{"read"}, "rec_id": foreign})
	expect("role "+access.Customer, read(foreign))
	h.grant(object{"user_id": user, "rec_type": "personas", "permissions": []string{"read"}, "rec_id": foreign})
	expect("user "+user, read(foreign))
	expect("owner "+own, read(own))
	expect("role "+role, object{"rec_type": "personas", "permission": "read"})
	expect("role "+role, object{"rec_type": "personas", "permission": "read", "rec_id": store.NilID})
	expect("role "+role, object{"rec_type": "personas", "permission": "read", "rec_id": nil})
	expect("role "+access.Customer, object{"rec_type": "personas", "permission": "create"})
	expect("owner "+user, object{"rec_type": "users", "permission": "read", "rec_id": user})
	expect("no", object{"rec_type": "users", "permission": "delete", "rec_id": user})
}

func TestCheck_DeniesUnknownNamesAndRecords(t *testing.T) {
	h := newHarness(t)
	persona := h.persona(h.user())
	for name, c := range map[string]object{
		"record":               {"rec_type": "personas", "permission": "read", "rec_id": store.NewID()},
		"record of other type": {"rec_type": "roles", "permission": "read", "rec_id": persona},
		"type without records": {"rec_type": "audit", "permission": "read", "rec_id": persona},
		"type":                 {"rec_type": "dragons", "permission": "read"},
		"permission":           {"rec_type": "personas", "permission": "fly"},
		"empty":                {},
	} {
		want := "no"
		if _, ok := c["rec_id"]; ok {
			want = "missing"
		}
		if got := h.check(h.root, c); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	for _, permission := range []string{"create", "read", "update", "delete", "read_all"} {
		for _, id := range []string{"", persona} {
			if got := h.check(h.root, object{"rec_type": "personas", "permission": permission, "rec_id": id}); got != "role "+access.Administrator {
				t.Errorf("%s: got %s", permission, got)
			}
		}
	}
	if got := h.check(h.root, object{"rec_type": "roles", "permission": "update", "rec_id": access.Advisor}); got != "role "+access.Administrator {
		t.Errorf("role: got %s", got)
	}
}

func TestCheck_KeepsOrderAndRepetitions(t *testing.T) {
	h := newHarness(t)
	user := h.user(access.Customer)
	own, foreign := h.persona(user), h.persona(h.root)
	checks := make([]object, 1000)
	for i := range checks {
		checks[i] = object{"rec_type": "personas", "permission": "read", "rec_id": []string{own, foreign, store.NewID()}[i%3]}
	}
	results := h.want(200, "", user, "POST", "/v1/rbac/check", object{"checks": checks}).body["results"].([]any)
	if len(results) != len(checks) {
		t.Fatalf("%d results", len(results))
	}
	for i, result := range results {
		if got := result.(map[string]any)["allowed"]; got != (i%3 == 0) {
			t.Errorf("check %d: allowed is %v", i, got)
		}
	}
}

func TestCheck_RejectsInvalidInput(t *testing.T) {
	h := newHarness(t)
	many := make([]object, 1001)
	for i := range many {
		many[i] = object{}
	}
	for _, body := range []object{
		{}, {"checks": nil}, {"checks": many}, {"checks": "all"}, {"checks": []any{5}},
		{"checks": []object{{"rec_id": "17"}}}, {"checks": []object{{"rec_type": 5}}}, {"checks": []object{{}}, "user_id": "me"},
	} {
		h.want(400, "common.invalid_input", h.root, "POST", "/v1/rbac/check", body)
	}
	a := h.want(400, "common.invalid_input", h.root, "POST", "/v1/rbac/check", object{"checks": []object{{}, {"rec_id": "17"}}})
	if details, _ := a.body["details"].(map[string]any); details["checks.1.rec_id"] == nil {
		t.Errorf("details are %v", a.body["details"])
	}
	h.want(403, "common.rbac_no_rec_access", h.user(access.Registrant), "POST", "/v1/rbac/check", object{"checks": []object{{}}})
}

func TestCheck_OfNothingHasNoResults(t *testing.T) {
	h := newHarness(t)
	for _, body := range []object{{"checks": []object{}}, {"checks": []object{}, "user_id": h.root}} {
		if a := h.want(200, "", h.root, "POST", "/v1/rbac/check", body); a.text != `{"results":[]}` && !strings.HasPrefix(a.text, `{"results":[],"people":`) {
			t.Errorf("got %s", a.text)
		}
	}
}

// A check of an endpoint answers as the endpoint does to the same user.
func TestCheck_OfEndpoints(t *testing.T) {
	h := newHarness(t)
	role := h.role("Readers of the trail")
	user, machine := h.user(role), h.Admin().Create("/v1/service-accounts", object{"name": "Nightly", "roles": []string{"Readers of the trail"}})
	h.grant(object{"role_id": role, "endpoint": "GET /v1/audit"})
	h.grant(object{"user_id": user, "endpoint": "GET /v1/tasks"})
	for key, want := range map[string][2]string{ // of the user, and of the service account
		"GET /v1/audit":                    {"role " + role, "role " + role},
		"GET /v1/tasks":                    {"user " + user, "no"},
		"GET /v1/customers":                {"no", "no"},
		"GET /v1/users/me":                 {"role " + access.Everyone, "no"},
		"GET /.well-known/jwks.json":       {" " + store.NilID, " " + store.NilID},
		"GET /v1/dragons":                  {"no", "no"},
		"get /v1/audit":                    {"no", "no"},
		"GET /v1/customers/" + store.NilID: {"no", "no"},
	} {
		c := object{"endpoint": key}
		if got := [2]string{h.check(user, c), h.check(h.root, c, "user_id", machine)}; got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
		if got := h.check(h.root, c, "user_id", user); got != want[0] {
			t.Errorf("%s: got %q for an administrator who asks, want %q", key, got, want[0])
		}
	}
	h.grant(object{"user_id": user, "rec_type": "customers", "permissions": []string{"read"}})
	for _, c := range []struct{ endpoint, permission, want string }{ // both must be allowed
		{"GET /v1/audit", "read", "user " + user}, {"GET /v1/audit", "delete", "no"}, {"GET /v1/customers", "read", "no"}, {"GET /v1/audit", "", "no"},
	} {
		if got := h.check(user, object{"endpoint": c.endpoint, "rec_type": "customers", "permission": c.permission}); got != c.want {
			t.Errorf("%v: got %q", c, got)
		}
	}
	if got := h.check(user, object{"endpoint": "GET /v1/audit", "rec_type": "customers", "permission": "read", "rec_id": store.NewID()}); got != "user "+user {
		t.Errorf("got %q for a record that the address of customers does not tell this user about", got)
	}
	if got := h.check(h.root, object{"endpoint": "GET /v1/customers"}); got != "role "+access.Administrator {
		t.Errorf("got %q for an administrator", got)
	}
}

func TestCheck_AdministratorsCheckOtherUsers(t *testing.T) {
	h := newHarness(t)
	role := h.role("Helpers")
	user, other := h.user(access.Customer, role), h.user(access.Customer)
	persona := h.persona(h.root)
	h.grant(object{"role_id": role, "rec_type": "personas", "permissions": []string{"update"}, "rec_id": persona})
	update := object{"rec_type": "personas", "permission": "update", "rec_id": persona}
	if got := h.check(h.root, update, "user_id", user); got != "role "+role {
		t.Errorf("got %s", got)
	}
	if got := h.check(h.root, update, "user_id", other); got != "no" {
		t.Errorf("got %s", got)
	}
	if got := h.check(user, update, "user_id", user); got != "role "+role {
		t.Errorf("got %s for the caller", got)
	}
	body := object{"checks": []object{update}, "user_id": user}
	h.want(403, "common.rbac_no_rec_access", other, "POST", "/v1/rbac/check", body)
	body["user_id"] = store.NewID()
	h.want(404, "users.user_not_found", h.root, "POST", "/v1/rbac/check", body)
}

// A check reveals no record that the address of the record does not reveal.
func TestCheck_HidesWhichRecordsAreMissing(t *testing.T) {
	h := newHarness(t)
	user := h.user(access.Customer)
	grant := h.grant(object{"user_id": user, "endpoint": "GET /v1/audit/status"})
	read := func(recType, id string) object {
		return object{"rec_type": recType, "permission": "read", "rec_id": id}
	}
	customer := h.Admin().Create("/v1/customers", object{"first_name": "Ada", "last_name": "Muster", "email": "ada@example.ch"})
	task := h.Admin().Create("/v1/customers/"+customer+"/tasks", object{"title": "Sign", "category": "sign", "weight": 1})
	for recType, id := range map[string]string{"notifications": store.NewID(), "roles": access.Advisor, "grants": grant, "api_keys": store.NewID(), "tasks": task} {
		for _, id := range []string{store.NewID(), id} {
			if got := h.check(user, read(recType, id)); got != "no" {
				t.Errorf("%s: got %s for %s", recType, got, id)
			}
		}
		if got := h.check(h.root, read(recType, store.NewID())); got != "missing" {
			t.Errorf("%s: got %s for an administrator", recType, got)
		}
	}
	if got := h.check(user, read("customers", store.NewID())); got != "missing" {
		t.Errorf("got %s for a customer, whose address answers 404", got)
	}
	if got := h.check(user, read("customers", customer)); got != "no" {
		t.Errorf("got %s for a customer, whose address answers 403", got)
	}
}

// Permissions on a type without an endpoint that reads its records do not reveal which records exist.
func TestCheck_AnswersAlikeForUnknownRecords(t *testing.T) {
	h := newHarness(t)
	role := h.role("Clerks")
	user := h.user(role)
	for _, g := range []object{
		{"endpoint": "POST /v1/rbac/check"}, {"endpoint": "GET /v1/rbac/explain"}, {"endpoint": "POST /v1/rbac/grants"},
		{"rec_type": "personas", "permissions": []string{"read", "read_all"}}, {"rec_type": "grants", "permissions": []string{"create", "read_all"}},
	} {
		g["role_id"] = role
		h.grant(g)
	}
	other := h.user()
	known := map[string]string{"personas": h.persona(h.root), "roles": access.Advisor}
	same := func(want string, ask func(recType, id string) string) {
		t.Helper()
		for recType, id := range known {
			if existing, unknown := ask(recType, id), ask(recType, store.NewID()); existing != unknown || !strings.Contains(want, existing) {
				t.Errorf("%s: got %q for a record, %q for none, want %q", recType, existing, unknown, want)
			}
		}
	}
	same("role "+role+", no", func(recType, id string) string {
		return h.check(user, object{"rec_type": recType, "permission": "read", "rec_id": id})
	})
	same("common.rbac_no_rec_access", func(recType, id string) string {
		answer := h.do(user, "GET", "/v1/rbac/explain?type="+recType+"&id="+id, nil)
		code, _ := answer.body["code"].(string)
		return code
	})
	same("rbac.grant_not_held", func(recType, id string) string {
		answer := h.do(user, "POST", "/v1/rbac/grants", object{"user_id": other, "rec_type": recType, "rec_id": id, "permissions": []string{"delete"}})
		code, _ := answer.body["code"].(string)
		return code
	})
	h.grant(object{"role_id": role, "endpoint": "GET /v1/personas/{persona_id}"})
	h.want(200, "", user, "GET", "/v1/rbac/explain?type=personas&id="+known["personas"], nil)
	h.want(404, "rbac.record_not_found", user, "GET", "/v1/rbac/explain?type=personas&id="+store.NewID(), nil)
	if got := h.check(user, object{"rec_type": "personas", "permission": "read", "rec_id": store.NewID()}); got != "missing" {
		t.Errorf("got %s with the endpoint", got)
	}
	h.want(201, "", user, "POST", "/v1/rbac/grants", object{"user_id": other, "rec_type": "personas", "rec_id": known["personas"], "permissions": []string{"read"}})
	h.want(400, "common.invalid_input", user, "POST", "/v1/rbac/grants", object{"user_id": other, "rec_type": "personas", "rec_id": store.NewID(), "permissions": []string{"read"}})
}
