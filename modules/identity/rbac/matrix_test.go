package rbac_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"kontor/server/access"
	"kontor/store"
)

// held returns the permissions of a role by record type, and its endpoints, as the API shows them.
func (h *harness) matrix(role string) (a answer, types map[string]string, endpoints []string) {
	a = h.want(200, "", h.root, "GET", "/v1/rbac/roles/"+role+"/permissions", nil)
	types = map[string]string{}
	for _, row := range a.body["types"].([]any) {
		t := row.(map[string]any)
		if held := fmt.Sprint(t["permissions"]); held != "[]" {
			types[t["rec_type"].(string)] = held
		}
	}
	for _, key := range a.body["endpoints"].([]any) {
		endpoints = append(endpoints, key.(string))
	}
	return a, types, endpoints
}

func onTypes(types ...object) object { return object{"types": append([]object{}, types...)} }

func on(recType string, permissions ...string) object {
	return object{"rec_type": recType, "permissions": permissions}
}

// A change replaces all grants of a role at once: those that stay are in force throughout, and single grants that gave more are
// replaced by their rest.
func TestMatrix_ReplacesTheGrantsOfARole(t *testing.T) {
	h := newHarness(t)
	role := h.role("Clerk")
	user := h.user(role)
	path := "/v1/rbac/roles/" + role + "/permissions"
	h.grant(object{"role_id": role, "rec_type": "payers", "permissions": []string{"read", "update"}})
	h.grant(object{"role_id": role, "rec_type": "payers", "permissions": []string{"create"}})
	onRecord := h.grant(object{"role_id": role, "rec_type": "personas", "permissions": []string{"read"}, "rec_id": h.persona(h.root)})
	h.grant(object{"role_id": role, "endpoint": "GET /v1/payers/{id}"})
	before, _, _ := h.matrix(role)
	if before.body["holders"] != 1.0 || before.body["fixed"] != false {
		t.Errorf("%v", before.text)
	}
	body := onTypes(on("payers", "read", "delete"), on("tasks", "read_all"))
	body["endpoints"] = []string{"POST /v1/rbac/check", "GET /v1/tasks"}
	a := h.want(200, "", h.root, "PUT", path, body, "If-Match", before.header.Get("ETag"))
	_, types, endpoints := h.matrix(role)
	if want := map[string]string{"payers": "[read delete]", "tasks": "[read_all]"}; fmt.Sprint(types) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", types, want)
	}
	if !slices.Equal(endpoints, []string{"GET /v1/tasks", "POST /v1/rbac/check"}) {
		t.Errorf("endpoints: %v", endpoints)
	}
	h.want(412, "common.precondition_failed", h.root, "PUT", path, onTypes(), "If-Match", before.header.Get("ETag"))
	for permission, want := range map[string]string{"read": "role", "update": "no", "create": "no", "delete": "role"} {
		if got := h.check(user, object{"rec_type": "payers", "permission": permission}); !strings.HasPrefix(got, want) {
			t.Errorf("%s payers: %s, want %s", permission, got, want)
		}
	}
	if grants := h.want(200, "", h.root, "GET", "/v1/rbac/grants?search.id="+onRecord, nil); len(grants.data()) != 1 {
		t.Error("the grant on a record is gone")
	}
	h.want(200, "", h.root, "PUT", path, onTypes(), "If-Match", a.header.Get("ETag"))
	if _, types, endpoints := h.matrix(role); len(types) != 0 || len(endpoints) != 2 {
		t.Errorf("got %v and %v: missing members must keep what there is", types, endpoints)
	}
}

// One entry says what changed, and each grant has its own.
func TestMatrix_IsAudited(t *testing.T) {
	h := newHarness(t)
	role := h.role("Clerk")
	h.grant(object{"role_id": role, "rec_type": "payers", "permissions": []string{"read"}})
	h.want(200, "", h.root, "PUT", "/v1/rbac/roles/"+role+"/permissions", onTypes(on("payers", "update")))
	found := h.want(200, "", h.root, "GET", "/v1/audit?search.action=rbac.roles.permissions&search.rec_id="+role, nil).data()
	if len(found) != 1 || found[0]["has_changes"] != true {
		t.Fatalf("got %v", found)
	}
	entry := h.want(200, "", h.root, "GET", fmt.Sprintf("/v1/audit/%.0f", found[0]["seq"]), nil)
	if !strings.Contains(entry.text, `"changes":[{"field":"payers","before":"read","after":"update","cut":false}]`) {
		t.Error(entry.text)
	}
	h.want(200, "", h.root, "PUT", "/v1/rbac/roles/"+role+"/permissions", onTypes(on("payers", "update")))
	if again := h.want(200, "", h.root, "GET", "/v1/audit?search.action=rbac.roles.permissions", nil).data(); len(again) != 1 {
		t.Errorf("a change of nothing is audited: %v", again)
	}
}

// The rules of single grants hold: callers cannot add what they do not hold, change a role of theirs, or remove grants of others.
func TestMatrix_DelegatesWhatTheCallerHolds(t *testing.T) {
	h := newHarness(t)
	manager, clerk := h.role("Manager"), h.role("Clerk")
	user := h.user(manager)
	for _, in := range []object{
		{"rec_type": "roles", "permissions": []string{"read"}}, {"rec_type": "grants", "permissions": []string{"create"}},
		{"rec_type": "payers", "permissions": []string{"read", "update"}}, {"endpoint": "PUT /v1/rbac/roles/{id}/permissions"},
		{"endpoint": "GET /v1/payers"},
	} {
		in["role_id"] = manager
		h.grant(in)
	}
	path := "/v1/rbac/roles/" + clerk + "/permissions"
	h.want(403, "rbac.grant_not_held", user, "PUT", path, onTypes(on("payers", "read", "delete")))
	h.want(403, "rbac.grant_not_held", user, "PUT", path, object{"endpoints": []string{"GET /v1/users"}})
	h.want(404, "rbac.endpoint_not_found", user, "PUT", path, object{"endpoints": []string{"GET /v1/ships"}})
	h.want(403, "rbac.grant_to_self", user, "PUT", "/v1/rbac/roles/"+manager+"/permissions",
		onTypes(on("payers", "read", "update"), on("roles", "read"), on("grants", "create"), on("tasks", "read")))
	h.want(404, "rbac.role_not_found", user, "PUT", "/v1/rbac/roles/"+store.NewID()+"/permissions", onTypes())
	if _, types, _ := h.matrix(clerk); len(types) != 0 {
		t.Errorf("a rejected change left %v", types)
	}
	h.want(200, "", user, "PUT", path, object{"types": []object{on("payers", "read")}, "endpoints": []string{"GET /v1/payers"}})
	h.grant(object{"role_id": clerk, "rec_type": "tasks", "permissions": []string{"read"}})
	h.want(403, "common.rbac_no_rec_access", user, "PUT", path, onTypes(on("payers", "read"))) // the grant on tasks is not theirs
	h.want(200, "", user, "PUT", path, onTypes(on("tasks", "read")))                           // their own grant is
}

// Administrators keep everything: no change takes the last rights away.
func TestMatrix_KeepsAdministrators(t *testing.T) {
	h := newHarness(t)
	path := "/v1/rbac/roles/" + access.Administrator + "/permissions"
	a, types, _ := h.matrix(access.Administrator)
	if a.body["fixed"] != true || types["customers"] != "[create read update delete read_all]" {
		t.Error(a.text)
	}
	h.want(409, "rbac.fixed_permissions", h.root, "PUT", path, onTypes())
	h.want(409, "rbac.fixed_permissions", h.root, "PUT", path, object{"endpoints": []string{"GET /v1/users"}})
}

func TestMatrix_RejectsWrongInput(t *testing.T) {
	h := newHarness(t)
	path := "/v1/rbac/roles/" + h.role("Clerk") + "/permissions"
	for _, body := range []object{
		onTypes(on("ships", "read")), onTypes(on("payers", "sail")), onTypes(on("payers", "read"), on("payers", "update")), {"types": "all"}, {"endpoints": []int{1}},
	} {
		h.want(400, "common.invalid_input", h.root, "PUT", path, body)
	}
	huge := make([]object, 1001)
	for i := range huge {
		huge[i] = on("payers", "read")
	}
	h.want(400, "common.invalid_input", h.root, "PUT", path, onTypes(huge...))
}

// Of concurrent changes with the same ETag one succeeds.
func TestMatrix_ConcurrentChangesDoNotMix(t *testing.T) {
	h := newHarness(t)
	role := h.role("Clerk")
	path := "/v1/rbac/roles/" + role + "/permissions"
	a, _, _ := h.matrix(role)
	var mu sync.Mutex
	statuses := map[int]int{}
	var all sync.WaitGroup
	for _, permission := range []string{"read", "update", "delete", "create", "read_all"} {
		all.Go(func() {
			got, err := h.try(h.root, "PUT", path, onTypes(on("payers", permission), on("tasks", permission)), "If-Match", a.header.Get("ETag"))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			statuses[got.status]++
		})
	}
	all.Wait()
	if _, types, _ := h.matrix(role); statuses[200] != 1 || statuses[412] != 4 || types["payers"] != types["tasks"] {
		t.Errorf("statuses %v, permissions %v", statuses, types)
	}
}
