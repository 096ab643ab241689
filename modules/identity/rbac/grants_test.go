package rbac_test

import (
	"testing"

	"kontor/server/access"
	"kontor/store"
)

func TestGrants_OnATypeAreInForceForTheNextRequest(t *testing.T) {
	h := newHarness(t)
	role := h.role("Reader")
	user, persona := h.user(role), h.persona(h.root)
	path := "/v1/personas/" + persona
	h.want(403, "common.rbac_no_rec_access", user, "GET", path, nil)
	onEndpoint := h.grant(object{"role_id": role, "endpoint": "GET /v1/personas/{persona_id}"})
	h.want(403, "common.rbac_no_rec_access", user, "GET", path, nil)
	onType := h.grant(object{"role_id": role, "rec_type": "personas", "permissions": []string{"read"}})
	for range 3 {
		h.want(200, "", user, "GET", path, nil)
		h.want(200, "", h.root, "DELETE", "/v1/rbac/grants/"+onType, nil)
		h.want(403, "common.rbac_no_rec_access", user, "GET", path, nil)
		onType = h.grant(object{"user_id": user, "rec_type": "personas", "permissions": []string{"read"}})
	}
	h.want(412, "common.precondition_failed", h.root, "DELETE", "/v1/rbac/grants/"+onEndpoint, nil, "If-Match", `"7"`)
	h.want(200, "", h.root, "DELETE", "/v1/rbac/grants/"+onEndpoint, nil)
	h.want(403, "common.rbac_no_rec_access", user, "GET", path, nil)
	h.want(404, "rbac.grant_not_found", h.root, "DELETE", "/v1/rbac/grants/"+onEndpoint, nil)
}

func TestGrants_OnOneRecord(t *testing.T) {
	h := newHarness(t)
	role := h.role("Helpers")
	helper, user := h.user(access.Customer, role), h.user(access.Customer)
	shared, other := h.persona(h.root), h.persona(h.root)
	onRole := h.grant(object{"role_id": role, "rec_type": "personas", "permissions": []string{"read", "update"}, "rec_id": shared})
	h.want(200, "", helper, "GET", "/v1/personas/"+shared, nil)
	h.want(200, "", helper, "PUT", "/v1/personas/"+shared, nil)
	h.want(403, "common.rbac_no_rec_access", helper, "DELETE", "/v1/personas/"+shared, nil)
	h.want(403, "common.rbac_no_rec_access", helper, "GET", "/v1/personas/"+other, nil)
	h.want(404, "personas.persona_not_found", helper, "GET", "/v1/personas/"+store.NewID(), nil)
	h.want(403, "common.rbac_no_rec_access", user, "GET", "/v1/personas/"+shared, nil)
	h.grant(object{"user_id": user, "rec_type": "personas", "permissions": []string{"read"}, "rec_id": shared})
	h.want(200, "", user, "GET", "/v1/personas/"+shared, nil)
	h.want(200, "", h.root, "DELETE", "/v1/rbac/grants/"+onRole, nil)
	h.want(403, "common.rbac_no_rec_access", helper, "PUT", "/v1/personas/"+shared, nil)
	h.want(200, "", user, "GET", "/v1/personas/"+shared, nil)
}

func TestGrants_AreListedAsCreated(t *testing.T) {
	h := newHarness(t)
	user, persona := h.user(), h.persona(h.root)
	made := h.want(201, "", h.root, "POST", "/v1/rbac/grants",
		object{"user_id": user, "rec_type": "personas", "permissions": []string{"update", "read", "update"}, "rec_id": persona})
	want := object{
		"id": made.id(), "role_id": nil, "user_id": user, "rec_type": "personas", "rec_id": persona, "endpoint": nil,
		"permissions": []any{"read", "update"}, "created_by": h.root, "created_at": made.body["created_at"],
	}
	listed := h.do(h.root, "GET", "/v1/rbac/grants?search.user_id="+user, nil).data()
	if len(listed) != 1 {
		t.Fatalf("%d grants are listed", len(listed))
	}
	delete(made.body, "people")
	for _, got := range []object{made.body, listed[0]} {
		if !equal(got, want) {
			t.Errorf("grant is %v, want %v", got, want)
		}
	}
}

func TestCreateGrant_RejectsInvalidInput(t *testing.T) {
	h := newHarness(t)
	user, read := h.user(), []string{"read"}
	for name, body := range map[string]object{
		"no principal":              {"rec_type": "personas", "permissions": read},
		"role and user":             {"role_id": access.Advisor, "user_id": user, "rec_type": "personas", "permissions": read},
		"no object":                 {"user_id": user},
		"type and endpoint":         {"user_id": user, "rec_type": "personas", "permissions": read, "endpoint": "GET /v1/personas/{persona_id}"},
		"endpoint with permissions": {"user_id": user, "permissions": read, "endpoint": "GET /v1/personas/{persona_id}"},
		"endpoint with record":      {"user_id": user, "rec_id": user, "endpoint": "GET /v1/personas/{persona_id}"},
		"no permissions":            {"user_id": user, "rec_type": "personas"},
		"empty permissions":         {"user_id": user, "rec_type": "personas", "permissions": []string{}},
		"unknown permission":        {"user_id": user, "rec_type": "personas", "permissions": []string{"read", "fly"}},
		"unknown type":              {"user_id": user, "rec_type": "dragons", "permissions": read},
		"type in another case":      {"user_id": user, "rec_type": "Customers", "permissions": read},
		"unknown record":            {"user_id": user, "rec_type": "personas", "permissions": read, "rec_id": store.NewID()},
		"type without records":      {"user_id": user, "rec_type": "audit", "permissions": read, "rec_id": store.NewID()},
		"malformed record":          {"user_id": user, "rec_type": "personas", "permissions": read, "rec_id": "17"},
		"create on one record":      {"user_id": user, "rec_type": "personas", "permissions": []string{"create"}, "rec_id": h.persona(h.root)},
		"read_all on one record":    {"user_id": user, "rec_type": "personas", "permissions": []string{"read_all"}, "rec_id": h.persona(h.root)},
		"malformed user":            {"user_id": "me", "rec_type": "personas", "permissions": read},
		"malformed role":            {"role_id": "Advisor", "rec_type": "personas", "permissions": read},
		"wrong type":                {"user_id": user, "rec_type": "personas", "permissions": "read"},
	} {
		if a := h.do(h.root, "POST", "/v1/rbac/grants", body); a.status != 400 || a.code() != "common.invalid_input" || a.body["details"] == nil {
			t.Errorf("%s: got %d %s", name, a.status, a.text)
		}
	}
	h.want(404, "users.user_not_found", h.root, "POST", "/v1/rbac/grants", object{"user_id": store.NewID(), "rec_type": "personas", "permissions": read})
	h.want(404, "rbac.role_not_found", h.root, "POST", "/v1/rbac/grants", object{"role_id": store.NewID(), "rec_type": "personas", "permissions": read})
	h.want(404, "rbac.endpoint_not_found", h.root, "POST", "/v1/rbac/grants", object{"user_id": user, "endpoint": "GET /v1/dragons"})
	h.want(404, "rbac.endpoint_not_found", h.root, "POST", "/v1/rbac/grants", object{"user_id": user, "endpoint": "get /v1/personas/{persona_id}"})
}

func TestCreateGrant_RejectsExistingPermissions(t *testing.T) {
	h := newHarness(t)
	user, persona := h.user(), h.persona(h.root)
	for _, body := range []object{
		{"user_id": user, "rec_type": "personas", "permissions": []string{"read", "update"}},
		{"user_id": user, "rec_type": "personas", "permissions": []string{"read", "update"}, "rec_id": persona},
		{"user_id": user, "endpoint": "GET /v1/personas/{persona_id}"},
	} {
		id := h.grant(body)
		h.want(409, "rbac.grant_exists", h.root, "POST", "/v1/rbac/grants", body)
		h.want(200, "", h.root, "DELETE", "/v1/rbac/grants/"+id, nil)
		h.grant(body)
	}
	// One existing permission is enough: deleting the first grant must take it away.
	a := h.want(409, "rbac.grant_exists", h.root, "POST", "/v1/rbac/grants",
		object{"user_id": user, "rec_type": "personas", "permissions": []string{"read", "delete"}})
	details, _ := a.body["details"].(map[string]any)
	if !equal(details["permissions"], []any{"read"}) {
		t.Errorf("details are %v", details)
	}
	h.grant(object{"user_id": user, "rec_type": "personas", "permissions": []string{"delete"}})
}

func TestCreateGrant_RejectsGrantsToSelf(t *testing.T) {
	h := newHarness(t)
	role := h.role("Mine")
	admin := h.user(access.Administrator, role)
	for _, body := range []object{
		{"user_id": admin, "rec_type": "personas", "permissions": []string{"read"}},
		{"user_id": admin, "endpoint": "GET /v1/personas/{persona_id}"},
		{"role_id": role, "rec_type": "personas", "permissions": []string{"read"}},
		{"role_id": access.Administrator, "endpoint": "GET /v1/personas/{persona_id}"},
		{"user_id": admin, "rec_type": "personas", "permissions": []string{"read"}, "rec_id": h.persona(admin)},
	} {
		h.want(403, "rbac.grant_to_self", admin, "POST", "/v1/rbac/grants", body)
	}
}

func TestCreateGrant_RejectsWhatTheCallerDoesNotHold(t *testing.T) {
	h := newHarness(t)
	lead, user := h.user(), h.user()
	for _, key := range []string{"POST /v1/rbac/grants", "DELETE /v1/rbac/grants/{id}"} {
		h.grant(object{"user_id": lead, "endpoint": key})
	}
	h.grant(object{"user_id": lead, "rec_type": "grants", "permissions": []string{"create"}})
	own, foreign := h.persona(lead), h.persona(h.root)
	onType := object{"user_id": user, "rec_type": "personas", "permissions": []string{"read", "update"}}
	onOwn := object{"user_id": user, "rec_type": "personas", "permissions": []string{"read", "delete"}, "rec_id": own}
	onForeign := object{"user_id": user, "rec_type": "personas", "permissions": []string{"read"}, "rec_id": foreign}
	onEndpoint := object{"user_id": user, "endpoint": "GET /v1/personas/{persona_id}"}

	h.want(403, "rbac.grant_not_held", lead, "POST", "/v1/rbac/grants", onType)
	h.want(403, "rbac.grant_not_held", lead, "POST", "/v1/rbac/grants", onForeign)
	h.want(403, "rbac.grant_not_held", lead, "POST", "/v1/rbac/grants", onEndpoint)
	mine := h.want(201, "", lead, "POST", "/v1/rbac/grants", onOwn).id()

	h.grant(object{"user_id": lead, "rec_type": "personas", "permissions": []string{"read"}})
	h.want(403, "rbac.grant_not_held", lead, "POST", "/v1/rbac/grants", onType)
	h.grant(object{"user_id": lead, "rec_type": "personas", "permissions": []string{"update"}})
	h.want(201, "", lead, "POST", "/v1/rbac/grants", onType)
	h.grant(object{"user_id": lead, "endpoint": "GET /v1/personas/{persona_id}"})
	h.want(201, "", lead, "POST", "/v1/rbac/grants", onEndpoint)

	// The lead may delete only grants of their own making.
	others := h.grant(object{"user_id": user, "rec_type": "personas", "permissions": []string{"delete"}, "rec_id": foreign})
	h.want(403, "common.rbac_no_rec_access", lead, "DELETE", "/v1/rbac/grants/"+others, nil)
	h.want(200, "", lead, "DELETE", "/v1/rbac/grants/"+mine, nil)
}

func TestCreateGrant_AllowsPassingOnARecordGrant(t *testing.T) {
	h := newHarness(t)
	lead, user, persona := h.user(), h.user(), h.persona(h.root)
	h.grant(object{"user_id": lead, "endpoint": "POST /v1/rbac/grants"})
	h.grant(object{"user_id": lead, "rec_type": "grants", "permissions": []string{"create"}})
	h.grant(object{"user_id": lead, "rec_type": "personas", "permissions": []string{"read"}, "rec_id": persona})
	h.want(403, "rbac.grant_not_held", lead, "POST", "/v1/rbac/grants",
		object{"user_id": user, "rec_type": "personas", "permissions": []string{"read", "update"}, "rec_id": persona})
	h.want(201, "", lead, "POST", "/v1/rbac/grants",
		object{"user_id": user, "rec_type": "personas", "permissions": []string{"read"}, "rec_id": persona})
}

func TestSweep_DeletesOrphanedGrants(t *testing.T) {
	h := newHarness(t)
	h.SkipRecordCheck() // no module deletes personas
	user, unreported, reported, kept := h.user(), h.persona(h.root), h.persona(h.root), h.persona(h.root)
	for _, id := range []string{unreported, reported, kept} {
		h.grant(object{"user_id": user, "rec_type": "personas", "permissions": []string{"read"}, "rec_id": id})
	}
	err := h.DB.InTx(t.Context(), func(tx *store.Tx) error {
		if _, err := tx.Exec(t.Context(), "DELETE FROM personas WHERE id IN ($1, $2)", unreported, reported); err != nil {
			return err
		}
		return h.RBAC.Forget(t.Context(), tx, access.Personas, reported)
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(h.do(h.root, "GET", "/v1/rbac/grants?search.user_id="+user, nil).data()); n != 2 {
		t.Errorf("%d grants after Forget", n)
	}
	if removed, err := h.RBAC.Sweep(t.Context()); removed != 1 || err != nil {
		t.Errorf("swept %d, %v", removed, err)
	}
	left := h.do(h.root, "GET", "/v1/rbac/grants?search.user_id="+user, nil).data()
	if len(left) != 1 || left[0]["rec_id"] != kept {
		t.Errorf("remaining grants: %v", left)
	}
	if removed, err := h.RBAC.Sweep(t.Context()); removed != 0 || err != nil {
		t.Errorf("swept again %d, %v", removed, err)
	}
}
