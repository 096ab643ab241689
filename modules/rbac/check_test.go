package rbac_test

import (
	"testing"

	"kontor/server/access"
	"kontor/store"
)

// check checks one permission and returns source and source id, or "no".
func (b *bank) check(user string, c object, extra ...string) string {
	b.t.Helper()
	body := object{"checks": []object{c}}
	for i := 0; i < len(extra); i += 2 {
		body[extra[i]] = extra[i+1]
	}
	result := b.want(200, "", user, "POST", "/v1/rbac/check", body).body["results"].([]any)[0].(map[string]any)
	if len(result) != 3 {
		b.t.Fatalf("result is %v", result)
	}
	if result["allowed"] != true {
		if result["source"] != "" || result["source_id"] != store.NilID {
			b.t.Fatalf("denied with %v", result)
		}
		return "no"
	}
	return result["source"].(string) + " " + result["source_id"].(string)
}

func TestCheck_NamesTheFirstSource(t *testing.T) {
	b := newBank(t)
	role := b.role("Helpers")
	user := b.user(access.Customer, role)
	own, foreign := b.persona(user), b.persona(b.root)
	read := func(id string) object { return object{"rec_type": "personas", "permission": "read", "rec_id": id} }
	expect := func(want string, c object) {
		t.Helper()
		if got := b.check(user, c); got != want {
			t.Errorf("%v: got %s, want %s", c, got, want)
		}
	}
	expect("no", read(foreign))
	b.grant(object{"user_id": user, "rec_type": "personas", "permissions": []string{"read"}})
	expect("user "+user, read(foreign))
	b.grant(object{"role_id": role, "rec_type": "personas", "permissions": []string{"read_all"}})
	expect("role "+role, read(foreign))
	b.grant(object{"role_id": access.Customer, "rec_type": "personas", "permissions": []string{"read"}, "rec_id": foreign})
	expect("role "+access.Customer, read(foreign))
	b.grant(object{"user_id": user, "rec_type": "personas", "permissions": []string{"read"}, "rec_id": foreign})
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
	b := newBank(t)
	persona := b.persona(b.user())
	for name, c := range map[string]object{
		"record":               {"rec_type": "personas", "permission": "read", "rec_id": store.NewID()},
		"record of other type": {"rec_type": "roles", "permission": "read", "rec_id": persona},
		"type without records": {"rec_type": "audit", "permission": "read", "rec_id": persona},
		"type":                 {"rec_type": "dragons", "permission": "read"},
		"permission":           {"rec_type": "personas", "permission": "fly"},
		"empty":                {},
	} {
		if got := b.check(b.root, c); got != "no" {
			t.Errorf("%s: got %s", name, got)
		}
	}
	for _, permission := range []string{"create", "read", "update", "delete", "read_all"} {
		for _, id := range []string{"", persona} {
			if got := b.check(b.root, object{"rec_type": "personas", "permission": permission, "rec_id": id}); got != "role "+access.Administrator {
				t.Errorf("%s: got %s", permission, got)
			}
		}
	}
	if got := b.check(b.root, object{"rec_type": "roles", "permission": "update", "rec_id": access.Advisor}); got != "role "+access.Administrator {
		t.Errorf("role: got %s", got)
	}
}

func TestCheck_KeepsOrderAndRepetitions(t *testing.T) {
	b := newBank(t)
	user := b.user(access.Customer)
	own, foreign := b.persona(user), b.persona(b.root)
	checks := make([]object, 1000)
	for i := range checks {
		checks[i] = object{"rec_type": "personas", "permission": "read", "rec_id": []string{own, foreign, store.NewID()}[i%3]}
	}
	results := b.want(200, "", user, "POST", "/v1/rbac/check", object{"checks": checks}).body["results"].([]any)
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
	b := newBank(t)
	many := make([]object, 1001)
	for i := range many {
		many[i] = object{}
	}
	for _, body := range []object{
		{}, {"checks": nil}, {"checks": []object{}}, {"checks": many}, {"checks": "all"}, {"checks": []any{5}},
		{"checks": []object{{"rec_id": "17"}}}, {"checks": []object{{"rec_type": 5}}}, {"checks": []object{{}}, "user_id": "me"},
	} {
		b.want(400, "common.invalid_input", b.root, "POST", "/v1/rbac/check", body)
	}
	a := b.want(400, "common.invalid_input", b.root, "POST", "/v1/rbac/check", object{"checks": []object{{}, {"rec_id": "17"}}})
	if details, _ := a.body["details"].(map[string]any); details["checks.1.rec_id"] == nil {
		t.Errorf("details are %v", a.body["details"])
	}
	b.want(403, "common.rbac_no_rec_access", b.user(access.Registrant), "POST", "/v1/rbac/check", object{"checks": []object{{}}})
}

func TestCheck_AdministratorsCheckOtherUsers(t *testing.T) {
	b := newBank(t)
	role := b.role("Helpers")
	user, other := b.user(access.Customer, role), b.user(access.Customer)
	persona := b.persona(b.root)
	b.grant(object{"role_id": role, "rec_type": "personas", "permissions": []string{"update"}, "rec_id": persona})
	update := object{"rec_type": "personas", "permission": "update", "rec_id": persona}
	if got := b.check(b.root, update, "user_id", user); got != "role "+role {
		t.Errorf("got %s", got)
	}
	if got := b.check(b.root, update, "user_id", other); got != "no" {
		t.Errorf("got %s", got)
	}
	if got := b.check(user, update, "user_id", user); got != "role "+role {
		t.Errorf("got %s for the caller", got)
	}
	body := object{"checks": []object{update}, "user_id": user}
	b.want(403, "common.rbac_no_rec_access", other, "POST", "/v1/rbac/check", body)
	body["user_id"] = store.NewID()
	b.want(404, "users.user_not_found", b.root, "POST", "/v1/rbac/check", body)
}
