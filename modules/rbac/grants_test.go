package rbac_test

import (
	"testing"

	"kontor/server/access"
	"kontor/store"
)

func TestGrants_OnATypeAreInForceForTheNextRequest(t *testing.T) {
	b := newBank(t)
	role := b.role("Reader")
	user, persona := b.user(role), b.persona(b.root)
	path := "/v1/personas/" + persona
	b.want(403, "common.rbac_no_rec_access", user, "GET", path, nil)
	onEndpoint := b.grant(object{"role_id": role, "endpoint": "GET /v1/personas/{persona_id}"})
	b.want(403, "common.rbac_no_rec_access", user, "GET", path, nil)
	onType := b.grant(object{"role_id": role, "rec_type": "personas", "permissions": []string{"read"}})
	for range 3 {
		b.want(200, "", user, "GET", path, nil)
		b.want(200, "", b.root, "DELETE", "/v1/rbac/grants/"+onType, nil)
		b.want(403, "common.rbac_no_rec_access", user, "GET", path, nil)
		onType = b.grant(object{"user_id": user, "rec_type": "personas", "permissions": []string{"read"}})
	}
	b.want(412, "common.precondition_failed", b.root, "DELETE", "/v1/rbac/grants/"+onEndpoint, nil, "If-Match", `"7"`)
	b.want(200, "", b.root, "DELETE", "/v1/rbac/grants/"+onEndpoint, nil)
	b.want(403, "common.rbac_no_rec_access", user, "GET", path, nil)
	b.want(404, "rbac.grant_not_found", b.root, "DELETE", "/v1/rbac/grants/"+onEndpoint, nil)
}

func TestGrants_OnOneRecord(t *testing.T) {
	b := newBank(t)
	role := b.role("Helpers")
	helper, user := b.user(access.Customer, role), b.user(access.Customer)
	shared, other := b.persona(b.root), b.persona(b.root)
	onRole := b.grant(object{"role_id": role, "rec_type": "personas", "permissions": []string{"read", "update"}, "rec_id": shared})
	b.want(200, "", helper, "GET", "/v1/personas/"+shared, nil)
	b.want(200, "", helper, "PUT", "/v1/personas/"+shared, nil)
	b.want(403, "common.rbac_no_rec_access", helper, "DELETE", "/v1/personas/"+shared, nil)
	b.want(403, "common.rbac_no_rec_access", helper, "GET", "/v1/personas/"+other, nil)
	b.want(404, "personas.persona_not_found", helper, "GET", "/v1/personas/"+store.NewID(), nil)
	b.want(403, "common.rbac_no_rec_access", user, "GET", "/v1/personas/"+shared, nil)
	b.grant(object{"user_id": user, "rec_type": "personas", "permissions": []string{"read"}, "rec_id": shared})
	b.want(200, "", user, "GET", "/v1/personas/"+shared, nil)
	b.want(200, "", b.root, "DELETE", "/v1/rbac/grants/"+onRole, nil)
	b.want(403, "common.rbac_no_rec_access", helper, "PUT", "/v1/personas/"+shared, nil)
	b.want(200, "", user, "GET", "/v1/personas/"+shared, nil)
}

func TestGrants_AreListedAsCreated(t *testing.T) {
	b := newBank(t)
	user, persona := b.user(), b.persona(b.root)
	made := b.want(201, "", b.root, "POST", "/v1/rbac/grants",
		object{"user_id": user, "rec_type": "personas", "permissions": []string{"update", "read", "update"}, "rec_id": persona})
	want := object{
		"id": made.id(), "role_id": nil, "user_id": user, "rec_type": "personas", "rec_id": persona, "endpoint": nil,
		"permissions": []any{"read", "update"}, "created_by": b.root, "created_at": made.body["created_at"],
	}
	listed := b.do(b.root, "GET", "/v1/rbac/grants?search.user_id="+user, nil).data()
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
	b := newBank(t)
	user, read := b.user(), []string{"read"}
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
		"create on one record":      {"user_id": user, "rec_type": "personas", "permissions": []string{"create"}, "rec_id": b.persona(b.root)},
		"read_all on one record":    {"user_id": user, "rec_type": "personas", "permissions": []string{"read_all"}, "rec_id": b.persona(b.root)},
		"malformed user":            {"user_id": "me", "rec_type": "personas", "permissions": read},
		"malformed role":            {"role_id": "Advisor", "rec_type": "personas", "permissions": read},
		"wrong type":                {"user_id": user, "rec_type": "personas", "permissions": "read"},
	} {
		if a := b.do(b.root, "POST", "/v1/rbac/grants", body); a.status != 400 || a.code() != "common.invalid_input" || a.body["details"] == nil {
			t.Errorf("%s: got %d %s", name, a.status, a.text)
		}
	}
	b.want(404, "users.user_not_found", b.root, "POST", "/v1/rbac/grants", object{"user_id": store.NewID(), "rec_type": "personas", "permissions": read})
	b.want(404, "rbac.role_not_found", b.root, "POST", "/v1/rbac/grants", object{"role_id": store.NewID(), "rec_type": "personas", "permissions": read})
	b.want(404, "rbac.endpoint_not_found", b.root, "POST", "/v1/rbac/grants", object{"user_id": user, "endpoint": "GET /v1/dragons"})
	b.want(404, "rbac.endpoint_not_found", b.root, "POST", "/v1/rbac/grants", object{"user_id": user, "endpoint": "get /v1/personas/{persona_id}"})
}

func TestCreateGrant_RejectsExistingPermissions(t *testing.T) {
	b := newBank(t)
	user, persona := b.user(), b.persona(b.root)
	for _, body := range []object{
		{"user_id": user, "rec_type": "personas", "permissions": []string{"read", "update"}},
		{"user_id": user, "rec_type": "personas", "permissions": []string{"read", "update"}, "rec_id": persona},
		{"user_id": user, "endpoint": "GET /v1/personas/{persona_id}"},
	} {
		id := b.grant(body)
		b.want(409, "rbac.grant_exists", b.root, "POST", "/v1/rbac/grants", body)
		b.want(200, "", b.root, "DELETE", "/v1/rbac/grants/"+id, nil)
		b.grant(body)
	}
	// One existing permission is enough: deleting the first grant must take it away.
	a := b.want(409, "rbac.grant_exists", b.root, "POST", "/v1/rbac/grants",
		object{"user_id": user, "rec_type": "personas", "permissions": []string{"read", "delete"}})
	details, _ := a.body["details"].(map[string]any)
	if !equal(details["permissions"], []any{"read"}) {
		t.Errorf("details are %v", details)
	}
	b.grant(object{"user_id": user, "rec_type": "personas", "permissions": []string{"delete"}})
}

func TestCreateGrant_RejectsGrantsToSelf(t *testing.T) {
	b := newBank(t)
	role := b.role("Mine")
	admin := b.user(access.Administrator, role)
	for _, body := range []object{
		{"user_id": admin, "rec_type": "personas", "permissions": []string{"read"}},
		{"user_id": admin, "endpoint": "GET /v1/personas/{persona_id}"},
		{"role_id": role, "rec_type": "personas", "permissions": []string{"read"}},
		{"role_id": access.Administrator, "endpoint": "GET /v1/personas/{persona_id}"},
		{"user_id": admin, "rec_type": "personas", "permissions": []string{"read"}, "rec_id": b.persona(admin)},
	} {
		b.want(403, "rbac.grant_to_self", admin, "POST", "/v1/rbac/grants", body)
	}
}

func TestCreateGrant_RejectsWhatTheCallerDoesNotHold(t *testing.T) {
	b := newBank(t)
	lead, user := b.user(), b.user()
	for _, key := range []string{"POST /v1/rbac/grants", "DELETE /v1/rbac/grants/{id}"} {
		b.grant(object{"user_id": lead, "endpoint": key})
	}
	b.grant(object{"user_id": lead, "rec_type": "grants", "permissions": []string{"create"}})
	own, foreign := b.persona(lead), b.persona(b.root)
	onType := object{"user_id": user, "rec_type": "personas", "permissions": []string{"read", "update"}}
	onOwn := object{"user_id": user, "rec_type": "personas", "permissions": []string{"read", "delete"}, "rec_id": own}
	onForeign := object{"user_id": user, "rec_type": "personas", "permissions": []string{"read"}, "rec_id": foreign}
	onEndpoint := object{"user_id": user, "endpoint": "GET /v1/personas/{persona_id}"}

	b.want(403, "rbac.grant_not_held", lead, "POST", "/v1/rbac/grants", onType)
	b.want(403, "rbac.grant_not_held", lead, "POST", "/v1/rbac/grants", onForeign)
	b.want(403, "rbac.grant_not_held", lead, "POST", "/v1/rbac/grants", onEndpoint)
	mine := b.want(201, "", lead, "POST", "/v1/rbac/grants", onOwn).id()

	b.grant(object{"user_id": lead, "rec_type": "personas", "permissions": []string{"read"}})
	b.want(403, "rbac.grant_not_held", lead, "POST", "/v1/rbac/grants", onType)
	b.grant(object{"user_id": lead, "rec_type": "personas", "permissions": []string{"update"}})
	b.want(201, "", lead, "POST", "/v1/rbac/grants", onType)
	b.grant(object{"user_id": lead, "endpoint": "GET /v1/personas/{persona_id}"})
	b.want(201, "", lead, "POST", "/v1/rbac/grants", onEndpoint)

	// The lead may delete only grants of their own making.
	others := b.grant(object{"user_id": user, "rec_type": "personas", "permissions": []string{"delete"}, "rec_id": foreign})
	b.want(403, "common.rbac_no_rec_access", lead, "DELETE", "/v1/rbac/grants/"+others, nil)
	b.want(200, "", lead, "DELETE", "/v1/rbac/grants/"+mine, nil)
}

func TestCreateGrant_AllowsPassingOnARecordGrant(t *testing.T) {
	b := newBank(t)
	lead, user, persona := b.user(), b.user(), b.persona(b.root)
	b.grant(object{"user_id": lead, "endpoint": "POST /v1/rbac/grants"})
	b.grant(object{"user_id": lead, "rec_type": "grants", "permissions": []string{"create"}})
	b.grant(object{"user_id": lead, "rec_type": "personas", "permissions": []string{"read"}, "rec_id": persona})
	b.want(403, "rbac.grant_not_held", lead, "POST", "/v1/rbac/grants",
		object{"user_id": user, "rec_type": "personas", "permissions": []string{"read", "update"}, "rec_id": persona})
	b.want(201, "", lead, "POST", "/v1/rbac/grants",
		object{"user_id": user, "rec_type": "personas", "permissions": []string{"read"}, "rec_id": persona})
}

func TestSweep_DeletesOrphanedGrants(t *testing.T) {
	b := newBank(t)
	b.WritesBehind() // no module deletes personas
	user, unreported, reported, kept := b.user(), b.persona(b.root), b.persona(b.root), b.persona(b.root)
	for _, id := range []string{unreported, reported, kept} {
		b.grant(object{"user_id": user, "rec_type": "personas", "permissions": []string{"read"}, "rec_id": id})
	}
	err := b.DB.InTx(t.Context(), func(tx *store.Tx) error {
		if _, err := tx.Exec(t.Context(), "DELETE FROM personas WHERE id IN ($1, $2)", unreported, reported); err != nil {
			return err
		}
		return b.RBAC.Forget(t.Context(), tx, access.Personas, reported)
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(b.do(b.root, "GET", "/v1/rbac/grants?search.user_id="+user, nil).data()); n != 2 {
		t.Errorf("%d grants after Forget", n)
	}
	if removed, err := b.RBAC.Sweep(t.Context()); removed != 1 || err != nil {
		t.Errorf("swept %d, %v", removed, err)
	}
	left := b.do(b.root, "GET", "/v1/rbac/grants?search.user_id="+user, nil).data()
	if len(left) != 1 || left[0]["rec_id"] != kept {
		t.Errorf("remaining grants: %v", left)
	}
	if removed, err := b.RBAC.Sweep(t.Context()); removed != 0 || err != nil {
		t.Errorf("swept again %d, %v", removed, err)
	}
}
