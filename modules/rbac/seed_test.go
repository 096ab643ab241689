package rbac_test

import (
	"reflect"
	"slices"
	"testing"

	"kontor/server/access"
)

func equal(a, b any) bool { return reflect.DeepEqual(a, b) }

func TestStart_SeedsTheGrantsOfBuiltInRoles(t *testing.T) {
	b := newBank(t)
	policy := b.Policy.Load()
	for role, want := range map[string]access.Permission{
		access.Advisor: access.ReadAll | access.Create | access.Update, access.Customer: access.Create, access.Registrant: access.None,
	} {
		if got := policy.Permissions(role, access.Personas); got != want {
			t.Errorf("%s holds %s on customers, want %s", role, got, want)
		}
	}
	if !policy.MayCall(access.Customer, "POST /v1/rbac/check") || policy.MayCall(access.Registrant, "POST /v1/rbac/check") {
		t.Error("endpoint grants do not follow the table")
	}
	listed := b.do(b.root, "GET", "/v1/rbac/roles?sort=name", nil).data()
	var names []string
	for _, role := range listed {
		if role["built_in"] != true {
			t.Errorf("%v is not built in", role["name"])
		}
		names = append(names, role["name"].(string))
	}
	if want := []string{"Administrator", "Advisor", "Customer", "Registrant"}; !slices.Equal(names, want) {
		t.Errorf("roles are %v", names)
	}
}

func TestStart_DoesNotRestoreDeletedGrants(t *testing.T) {
	b := newBank(t)
	for _, filter := range []string{"search.endpoint=POST /v1/rbac/check", "search.rec_type=personas"} {
		for _, grant := range b.do(b.root, "GET", "/v1/rbac/grants?search.role_id="+access.Customer+"&"+escape(filter), nil).data() {
			b.want(200, "", b.root, "DELETE", "/v1/rbac/grants/"+grant["id"].(string), nil)
		}
	}
	var entries, after int64
	b.count(&entries)
	again := b.newService()
	if err := again.Start(t.Context(), b.endpoints()); err != nil {
		t.Fatal(err)
	}
	if b.count(&after); after != entries {
		t.Errorf("a start without changes wrote %d audit entries", after-entries)
	}
	policy := b.Policy.Load()
	if policy.MayCall(access.Customer, "POST /v1/rbac/check") || policy.Permissions(access.Customer, access.Personas) != access.None {
		t.Error("a deleted grant was restored")
	}
	if !policy.MayCall(access.Advisor, "POST /v1/rbac/check") {
		t.Error("a grant that nobody deleted is missing")
	}
}

func (b *bank) count(entries *int64) {
	b.t.Helper()
	if err := b.DB.QueryRow(b.t.Context(), "SELECT COUNT(*) FROM audit_entries").Scan(entries); err != nil {
		b.t.Fatal(err)
	}
}

func TestStart_SeedsNewEndpointsAndKeepsOldGrants(t *testing.T) {
	b := newBank(t)
	next := b.endpoints("rbac.check")
	added := next[0]
	added.Name, added.Method, added.Path, added.Roles = "test.new", "GET", "/v1/new", []string{access.Registrant}
	next = append(next, added)
	next[1].Summary = "Another summary."
	again := b.newService()
	if err := again.Start(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	policy := b.Policy.Load()
	if !policy.MayCall(access.Registrant, "GET /v1/new") {
		t.Error("the new endpoint is not granted")
	}
	if !policy.MayCall(access.Customer, "POST /v1/rbac/check") {
		t.Error("the grant on an endpoint that this version does not serve is missing")
	}
	listed := func(key string) []map[string]any {
		return b.do(b.root, "GET", "/v1/rbac/endpoints?"+escape("search.endpoint="+key), nil).data()
	}
	if found := listed("POST /v1/rbac/check"); len(found) != 0 {
		t.Errorf("an endpoint that this version does not serve is listed: %v", found)
	}
	if found := listed(next[1].Key()); len(found) != 1 || found[0]["summary"] != "Another summary." {
		t.Errorf("a changed endpoint is listed as %v", found)
	}
	if total := b.do(b.root, "GET", "/v1/rbac/endpoints", nil).body["total"]; total != float64(len(next)) {
		t.Errorf("%v endpoints are listed, want %d", total, len(next))
	}
}

func TestCatalogue_ListsEndpointsAndRecordTypes(t *testing.T) {
	b := newBank(t)
	endpoints := b.want(200, "", b.root, "GET", "/v1/rbac/endpoints", nil)
	if got := endpoints.body["total"]; got != float64(len(b.Endpoints())) {
		t.Errorf("%v endpoints are listed, want %d", got, len(b.Endpoints()))
	}
	first := b.do(b.root, "GET", "/v1/rbac/endpoints?search.name=personas.get", nil).data()[0]
	want := object{"endpoint": "GET /v1/personas/{persona_id}", "name": "personas.get", "method": "GET", "path": "/v1/personas/{persona_id}",
		"tag": "Personal Identity", "summary": "Get a persona.", "access": "bearer personas:read", "rate_limit": "private"}
	if !equal(first, want) {
		t.Errorf("endpoint is %v", first)
	}
	types := b.want(200, "", b.root, "GET", "/v1/rbac/record-types", nil)
	if len(types.data()) != len(access.RecordTypes()) || !equal(types.data()[0], object{"id": access.APIKeys.ID, "name": "api_keys"}) {
		t.Errorf("record types are %s", types.text)
	}
	if got := b.do(b.root, "GET", "/v1/rbac/record-types?limit=2&sort=-name", nil); len(got.data()) != 2 || got.body["has_more"] != true || got.data()[0]["name"] != "users" {
		t.Errorf("page is %s", got.text)
	}
}
