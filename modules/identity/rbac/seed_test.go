package rbac_test

import (
	"reflect"
	"slices"
	"testing"

	"kontor/modules/identity/rbac"
	"kontor/server/access"
)

func equal(x, y any) bool { return reflect.DeepEqual(x, y) }

func TestStart_SeedsTheGrantsOfBuiltInRoles(t *testing.T) {
	h := newHarness(t)
	policy := h.Policy.Load()
	for role, want := range map[string]access.Permission{
		access.Advisor: access.ReadAll | access.Create | access.Update, access.Customer: access.Create, access.Registrant: access.None,
	} {
		if got := policy.Permissions(role, access.Personas); got != want {
			t.Errorf("%s holds %s on customers, want %s", role, got, want)
		}
	}
	if !policy.MayCall(access.Everyone, "POST /v1/rbac/check") || policy.MayCall(access.Customer, "POST /v1/rbac/check") {
		t.Error("endpoint grants do not follow the table")
	}
	listed := h.do(h.root, "GET", "/v1/rbac/roles?sort=name", nil).data()
	var names []string
	for _, role := range listed {
		if role["built_in"] != true {
			t.Errorf("%v is not built in", role["name"])
		}
		names = append(names, role["name"].(string))
	}
	if want := []string{"Administrator", "Advisor", "Customer", "Everyone", "Registrant"}; !slices.Equal(names, want) {
		t.Errorf("roles are %v", names)
	}
}

func TestStart_DoesNotRestoreDeletedGrants(t *testing.T) {
	const readPersona = "GET /v1/personas/{persona_id}"
	h := newHarness(t)
	for _, filter := range []string{"search.endpoint=" + readPersona, "search.rec_type=personas"} {
		for _, grant := range h.do(h.root, "GET", "/v1/rbac/grants?search.role_id="+access.Customer+"&"+escape(filter), nil).data() {
			h.want(200, "", h.root, "DELETE", "/v1/rbac/grants/"+grant["id"].(string), nil)
		}
	}
	var entries, after int64
	h.count(&entries)
	again := h.newService()
	if err := again.Start(t.Context(), h.endpoints()); err != nil {
		t.Fatal(err)
	}
	if h.count(&after); after != entries {
		t.Errorf("a start without changes wrote %d audit entries", after-entries)
	}
	policy := h.Policy.Load()
	if policy.MayCall(access.Customer, readPersona) || policy.Permissions(access.Customer, access.Personas) != access.None {
		t.Error("a deleted grant was restored")
	}
	if !policy.MayCall(access.Advisor, readPersona) {
		t.Error("a grant that was not deleted is missing")
	}
}

func (h *harness) count(entries *int64) {
	h.t.Helper()
	if err := h.DB.QueryRow(h.t.Context(), "SELECT COUNT(*) FROM audit_entries").Scan(entries); err != nil {
		h.t.Fatal(err)
	}
}

func TestStart_SeedsNewEndpointsAndKeepsOldGrants(t *testing.T) {
	h := newHarness(t)
	next := h.endpoints("rbac.check")
	added := next[0]
	added.Name, added.Method, added.Path, added.Roles = "test.new", "GET", "/v1/new", []string{access.Registrant}
	next = append(next, added)
	next[1].Summary = "Another summary."
	again := h.newService()
	if err := again.Start(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	policy := h.Policy.Load()
	if !policy.MayCall(access.Registrant, "GET /v1/new") {
		t.Error("the new endpoint is not granted")
	}
	if !policy.MayCall(access.Everyone, "POST /v1/rbac/check") {
		t.Error("the grant on an endpoint that this version does not serve is missing")
	}
	listed := func(key string) []map[string]any {
		return h.do(h.root, "GET", "/v1/rbac/endpoints?"+escape("search.endpoint="+key), nil).data()
	}
	if found := listed("POST /v1/rbac/check"); len(found) != 0 {
		t.Errorf("an endpoint that this version does not serve is listed: %v", found)
	}
	if found := listed(next[1].Key()); len(found) != 1 || found[0]["summary"] != "Another summary." {
		t.Errorf("a changed endpoint is listed as %v", found)
	}
	if total := h.do(h.root, "GET", "/v1/rbac/endpoints", nil).body["total"]; total != float64(len(next)) {
		t.Errorf("%v endpoints are listed, want %d", total, len(next))
	}
}

func TestCatalogue_ListsEndpointsAndRecordTypes(t *testing.T) {
	h := newHarness(t)
	endpoints := h.want(200, "", h.root, "GET", "/v1/rbac/endpoints", nil)
	if got := endpoints.body["total"]; got != float64(len(h.Endpoints())) {
		t.Errorf("%v endpoints are listed, want %d", got, len(h.Endpoints()))
	}
	first := h.do(h.root, "GET", "/v1/rbac/endpoints?search.name=personas.get", nil).data()[0]
	want := object{"endpoint": "GET /v1/personas/{persona_id}", "name": "personas.get", "method": "GET", "path": "/v1/personas/{persona_id}",
		"tag": "Personal Identity", "summary": "Get a persona.", "access": "bearer personas:read", "rate_limit": "private", "assurance": "any"}
	if !equal(first, want) {
		t.Errorf("endpoint is %v", first)
	}
	types := h.want(200, "", h.root, "GET", "/v1/rbac/record-types", nil)
	if len(types.data()) != len(access.RecordTypes()) || !equal(types.data()[0], object{"id": access.APIKeys.ID, "name": "api_keys", "description": "",
		"permissions": []any{"create", "read", "update", "delete", "read_all"}, "external": false}) {
		t.Errorf("record types are %s", types.text)
	}
	if got := h.do(h.root, "GET", "/v1/rbac/record-types?limit=2&sort=-name", nil); len(got.data()) != 2 || got.body["has_more"] != true || got.data()[0]["name"] != "webhooks" {
		t.Errorf("page is %s", got.text)
	}
}

// A later version gives customers an endpoint, unless administrators have changed the grants of the role.
func TestStart_GivesALaterGrantOnce(t *testing.T) {
	const bills = "POST /v1/invoices/qrcode"
	for name, c := range map[string]struct {
		before func(h *harness)
		want   bool
	}{
		"as installed": {func(*harness) {}, true},
		"with a grant of the bank": {func(h *harness) {
			h.want(201, "", h.root, "POST", "/v1/rbac/grants", map[string]any{"role_id": access.Customer, "endpoint": "GET /v1/rbac/roles"})
		}, false},
		"without an initial grant": {func(h *harness) {
			revoke(h, "GET /v1/payers")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			rbac.AsBeforeLaterGrants(t)
			revoke(h, bills)
			c.before(h)
			for range 2 {
				if err := h.newService().Start(t.Context(), h.endpoints()); err != nil {
					t.Fatal(err)
				}
			}
			if got := h.Policy.Load().MayCall(access.Customer, bills); got != c.want {
				t.Errorf("customers may read bills: %t, want %t", got, c.want)
			}
		})
	}
}

// revoke deletes the grant of customers on an endpoint.
func revoke(h *harness, key string) {
	h.t.Helper()
	grants := h.do(h.root, "GET", "/v1/rbac/grants?search.role_id="+access.Customer+"&"+escape("search.endpoint="+key), nil).data()
	h.want(200, "", h.root, "DELETE", "/v1/rbac/grants/"+grants[0]["id"].(string), nil)
}
