package rbac_test

import (
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/store"
)

func TestRoles_CreateReadUpdateDelete(t *testing.T) {
	h := newHarness(t)
	made := h.want(201, "", h.root, "POST", "/v1/rbac/roles", object{"name": " Auditor ", "description": "Reads.", "built_in": true, "id": "x"})
	id := made.id()
	if made.body["name"] != "Auditor" || made.body["built_in"] != false || made.body["created_by"] != h.root || made.header.Get("ETag") == "" {
		t.Errorf("created role is %s", made.text)
	}
	read := h.want(200, "", h.root, "GET", "/v1/rbac/roles/"+id, nil)
	if read.text != made.text {
		t.Errorf("read %s, created %s", read.text, made.text)
	}
	h.want(304, "", h.root, "GET", "/v1/rbac/roles/"+id, nil, "If-None-Match", read.header.Get("ETag"))
	h.want(412, "common.precondition_failed", h.root, "PUT", "/v1/rbac/roles/"+id, object{"name": "Other"}, "If-Match", `"7"`)
	changed := h.want(200, "", h.root, "PUT", "/v1/rbac/roles/"+id, object{"description": "Reads all."}, "If-Match", read.header.Get("ETag"))
	if changed.body["name"] != "Auditor" || changed.body["description"] != "Reads all." || changed.header.Get("ETag") == read.header.Get("ETag") {
		t.Errorf("changed role is %s", changed.text)
	}
	h.want(412, "common.precondition_failed", h.root, "DELETE", "/v1/rbac/roles/"+id, nil, "If-Match", read.header.Get("ETag"))
	if message := h.want(200, "", h.root, "DELETE", "/v1/rbac/roles/"+id, nil).body["message"]; message == "" {
		t.Error("no message")
	}
	h.want(404, "rbac.role_not_found", h.root, "GET", "/v1/rbac/roles/"+id, nil)
	h.want(404, "rbac.role_not_found", h.root, "DELETE", "/v1/rbac/roles/"+id, nil)
	h.want(404, "rbac.role_not_found", h.root, "PUT", "/v1/rbac/roles/"+id, object{"name": "x"})
}

func TestRoles_RejectInvalidInput(t *testing.T) {
	h := newHarness(t)
	for _, body := range []object{
		{}, {"name": nil}, {"name": "  "}, {"name": 5}, {"name": strings.Repeat("x", 101)}, {"name": "a\u0000b"},
		{"name": store.NewID()}, {"name": "ok", "description": strings.Repeat("x", 1001)},
	} {
		h.want(400, "common.invalid_input", h.root, "POST", "/v1/rbac/roles", body)
	}
	h.want(400, "common.invalid_input", h.root, "PUT", "/v1/rbac/roles/"+access.Advisor, object{"name": ""})
	h.want(400, "common.invalid_input", h.root, "GET", "/v1/rbac/roles/17", nil)
	h.want(409, "rbac.role_exists", h.root, "POST", "/v1/rbac/roles", object{"name": "aDVISOR"})
	id := h.role("Auditor")
	h.want(409, "rbac.role_exists", h.root, "PUT", "/v1/rbac/roles/"+id, object{"name": "customer"})
}

func TestRoles_BuiltInKeepTheirNames(t *testing.T) {
	h := newHarness(t)
	for _, id := range []string{access.Administrator, access.Advisor, access.Customer, access.Registrant} {
		h.want(409, "rbac.role_built_in", h.root, "DELETE", "/v1/rbac/roles/"+id, nil)
		h.want(409, "rbac.role_built_in", h.root, "PUT", "/v1/rbac/roles/"+id, object{"name": "Renamed"})
	}
	changed := h.want(200, "", h.root, "PUT", "/v1/rbac/roles/"+access.Advisor, object{"name": "Advisor", "description": "New."})
	if changed.body["description"] != "New." {
		t.Errorf("description is %v", changed.body["description"])
	}
}

func TestDeleteRole_RemovesGrantsAndHolders(t *testing.T) {
	h := newHarness(t)
	role := h.role("Reader")
	holder, persona := h.user(role), h.persona(h.root)
	h.grant(object{"role_id": role, "endpoint": "GET /v1/personas/{persona_id}"})
	h.grant(object{"role_id": role, "rec_type": "personas", "permissions": []string{"read"}})
	h.grant(object{"role_id": role, "rec_type": "personas", "permissions": []string{"update"}, "rec_id": persona})
	h.want(200, "", holder, "GET", "/v1/personas/"+persona, nil)

	h.want(200, "", h.root, "DELETE", "/v1/rbac/roles/"+role, nil)
	h.want(403, "common.rbac_no_rec_access", holder, "GET", "/v1/personas/"+persona, nil)
	if roles := h.do(h.root, "GET", "/v1/users/"+holder, nil).body["roles"]; !equal(roles, []any{}) {
		t.Errorf("the holder still has the roles %v", roles)
	}
	if n := len(h.do(h.root, "GET", "/v1/rbac/grants?search.role_id="+role, nil).data()); n != 0 {
		t.Errorf("%d grants of the role are left", n)
	}
	for _, table := range []string{"user_roles WHERE role_id", "grants WHERE principal_id", "endpoint_grants WHERE principal_id"} {
		var n int
		if err := h.DB.QueryRow(t.Context(), "SELECT COUNT(*) FROM "+table+" = $1", role).Scan(&n); err != nil || n != 0 {
			t.Errorf("%s: %d rows are left, %v", table, n, err)
		}
	}
}

func TestDeleteRole_RejectsRolesOfTheCaller(t *testing.T) {
	h := newHarness(t)
	role := h.role("Shared")
	second := h.user(access.Administrator, role)
	h.want(403, "rbac.grant_to_self", second, "DELETE", "/v1/rbac/roles/"+role, nil)
	h.want(200, "", h.root, "DELETE", "/v1/rbac/roles/"+role, nil)
}

func TestAccess_NonAdministratorsNeedGrants(t *testing.T) {
	h := newHarness(t)
	user, role := h.user(access.Advisor), h.role("Hidden")
	for _, request := range [][2]string{
		{"POST", "/v1/rbac/roles"}, {"GET", "/v1/rbac/roles"}, {"GET", "/v1/rbac/roles/" + role}, {"PUT", "/v1/rbac/roles/" + role},
		{"DELETE", "/v1/rbac/roles/" + role}, {"POST", "/v1/rbac/grants"}, {"GET", "/v1/rbac/grants"}, {"DELETE", "/v1/rbac/grants/" + role},
		{"GET", "/v1/rbac/endpoints"}, {"GET", "/v1/rbac/record-types"}, {"GET", "/v1/rate-limits"}, {"PUT", "/v1/rate-limits"},
	} {
		h.want(403, "common.rbac_no_rec_access", user, request[0], request[1], nil)
		h.want(401, "common.unauthorized", store.NewID(), request[0], request[1], nil)
	}
	// With grants on the endpoints alone, a user sees only roles of their own and roles granted to them.
	for _, key := range []string{"GET /v1/rbac/roles", "GET /v1/rbac/roles/{id}", "POST /v1/rbac/roles", "DELETE /v1/rbac/roles/{id}", "GET /v1/rate-limits"} {
		h.grant(object{"user_id": user, "endpoint": key})
	}
	h.want(403, "common.rbac_no_rec_access", user, "POST", "/v1/rbac/roles", object{"name": "Mine"})
	h.want(403, "common.rbac_no_rec_access", user, "GET", "/v1/rate-limits", nil)
	h.grant(object{"user_id": user, "rec_type": "roles", "permissions": []string{"create"}})
	mine := h.want(201, "", user, "POST", "/v1/rbac/roles", object{"name": "Mine"}).id()
	h.want(403, "common.rbac_no_rec_access", user, "GET", "/v1/rbac/roles/"+role, nil)
	h.grant(object{"user_id": user, "rec_type": "roles", "permissions": []string{"read"}, "rec_id": role})
	h.want(200, "", user, "GET", "/v1/rbac/roles/"+role, nil)
	h.want(403, "common.rbac_no_rec_access", user, "DELETE", "/v1/rbac/roles/"+role, nil)
	listed := h.want(200, "", user, "GET", "/v1/rbac/roles", nil)
	if listed.body["total"] != 2.0 {
		t.Errorf("the user sees %s", listed.text)
	}
	h.want(200, "", user, "DELETE", "/v1/rbac/roles/"+mine, nil)
}

func TestCreateRole_ReplaysTheAnswerForTheSameIdempotencyKey(t *testing.T) {
	h := newHarness(t)
	first := h.want(201, "", h.root, "POST", "/v1/rbac/roles", object{"name": "Once"}, "Idempotency-Key", "k1")
	again := h.want(201, "", h.root, "POST", "/v1/rbac/roles", object{"name": "Once"}, "Idempotency-Key", "k1")
	if again.text != first.text {
		t.Errorf("the replay is %s, the first answer %s", again.text, first.text)
	}
	h.want(422, "common.idempotency_mismatch", h.root, "POST", "/v1/rbac/roles", object{"name": "Twice"}, "Idempotency-Key", "k1")
}
