package rbac_test

import (
	"net/url"
	"strings"
	"testing"

	"kontor/server/access"
)

func TestRecordTypes_OfOtherApplications(t *testing.T) {
	h := newHarness(t)
	const path = "/v1/rbac/record-types"
	invoice := object{"name": "invoice", "description": "Of the accounting system", "permissions": []string{"approve", "read", "approve"}}
	made := h.want(201, "", h.root, "POST", path, invoice)
	if p := made.body["permissions"].([]any); len(p) != 2 || made.body["external"] != true {
		t.Errorf("created %s", made.text)
	}
	h.want(409, "rbac.record_type_exists", h.root, "POST", path, invoice)
	for _, used := range []string{"customers", "Customers", "grants"} {
		h.want(409, "rbac.record_type_exists", h.root, "POST", path, object{"name": used, "permissions": []string{"read"}})
	}
	for _, wrong := range []object{
		{"name": "", "permissions": []string{"read"}}, {"name": "in voice", "permissions": []string{"read"}}, {"name": "a,b", "permissions": []string{"read"}},
		{"name": "order", "permissions": []string{}}, {"name": "order", "permissions": []string{"read,write"}}, {"name": "order", "permissions": []string{""}},
		{"name": strings.Repeat("x", 65), "permissions": []string{"read"}}, {"name": "order", "permissions": strings.Split(strings.Repeat("p,", 51), ",")},
	} {
		h.want(400, "common.invalid_input", h.root, "POST", path, wrong)
	}
	advisor, foreign := h.user(access.Advisor), h.persona(h.root)
	h.grant(object{"user_id": advisor, "rec_type": "personas", "rec_id": foreign, "permissions": []string{"read"}})
	h.want(403, "common.rbac_no_rec_access", advisor, "POST", path, object{"name": "order", "permissions": []string{"read"}})

	// A user who may create grants is no administrator.
	grantor := h.user(access.Customer)
	for _, endpoint := range []string{"POST /v1/rbac/grants", "POST " + path, "DELETE " + path + "/{id}"} {
		h.grant(object{"user_id": grantor, "endpoint": endpoint})
	}
	h.grant(object{"user_id": grantor, "rec_type": "grants", "permissions": []string{"create", "delete"}})
	h.want(403, "common.rbac_no_rec_access", grantor, "POST", path, object{"name": "order", "permissions": []string{"read"}})
	h.want(403, "common.rbac_no_rec_access", grantor, "DELETE", path+"/"+made.id(), nil)

	give := func(to, id string, permissions ...string) object {
		return object{"user_id": to, "rec_type": "invoice", "rec_id": id, "permissions": permissions}
	}
	grants := "/v1/rbac/grants"
	h.want(403, "rbac.grant_not_held", grantor, "POST", grants, give(advisor, "2026-17", "read"))
	onGrantor := h.grant(give(grantor, "2026-17", "read"))
	h.want(201, "", grantor, "POST", grants, give(advisor, "2026-17", "read"))
	h.want(403, "rbac.grant_not_held", grantor, "POST", grants, give(advisor, "2026-17", "approve"))
	h.want(403, "rbac.grant_not_held", grantor, "POST", grants, give(advisor, "2026-18", "read"))
	h.want(403, "rbac.grant_not_held", grantor, "POST", grants, object{"user_id": advisor, "rec_type": "invoice", "permissions": []string{"read"}})
	h.want(403, "rbac.grant_to_self", grantor, "POST", grants, give(grantor, "2026-17", "approve"))
	h.want(409, "rbac.grant_exists", h.root, "POST", grants, give(advisor, "2026-17", "read", "approve"))
	h.want(400, "common.invalid_input", h.root, "POST", grants, give(advisor, "2026-17", "delete"))
	h.want(400, "common.invalid_input", h.root, "POST", grants, object{"user_id": advisor, "rec_type": "order", "permissions": []string{"read"}})
	h.want(400, "common.invalid_input", h.root, "POST", grants, give(advisor, strings.Repeat("ü", 201), "read"))
	h.grant(give(advisor, strings.Repeat("ü", 200), "read"))
	h.grant(object{"role_id": access.Advisor, "rec_type": "invoice", "permissions": []string{"approve"}})

	for search, want := range map[string]float64{"2026-17": 2, "2026-1*": 2, "2026-18": 0, "2026": 0, strings.Repeat("ü", 200): 1, strings.Repeat("Ü", 200): 0,
		strings.ToUpper(foreign): 1, foreign: 1, "*": 4} {
		if found := h.want(200, "", h.root, "GET", grants+"?search.rec_id="+url.QueryEscape(search), nil); found.body["total"] != want {
			t.Errorf("%s: found %s, want %v", search, found.text, want)
		}
	}

	h.want(409, "rbac.record_type_in_use", h.root, "DELETE", path+"/"+made.id(), nil)
	h.want(409, "rbac.record_type_built_in", h.root, "DELETE", path+"/"+access.Customers.ID, nil)
	h.want(404, "rbac.record_type_not_found", h.root, "DELETE", path+"/0198f5c0-52a1-7cc2-9f00-2a3b4c5d6e7f", nil)
	for _, g := range h.want(200, "", h.root, "GET", grants+"?search.rec_type=invoice&limit=100", nil).data() {
		h.want(200, "", h.root, "DELETE", grants+"/"+g["id"].(string), nil)
	}
	h.want(404, "rbac.grant_not_found", h.root, "DELETE", grants+"/"+onGrantor, nil)
	h.want(200, "", h.root, "DELETE", path+"/"+made.id(), nil)
	h.want(201, "", h.root, "POST", path, invoice)
}

// A user who may reset the sign-in of others cannot become a user with more rights on records of another application.
func TestRecordTypes_CountAsRights(t *testing.T) {
	h := newHarness(t)
	h.want(201, "", h.root, "POST", "/v1/rbac/record-types", object{"name": "invoice", "permissions": []string{"approve"}})
	helper, clerk := h.user(access.Advisor), h.user(access.Customer)
	for _, role := range []string{access.Customer} {
		h.want(200, "", h.root, "PUT", "/v1/users/"+helper+"/roles", object{"roles": []string{access.Advisor, role}})
	}
	h.grant(object{"user_id": helper, "rec_type": "users", "permissions": []string{"read_all", "update"}})
	status := object{"status": "disabled"}
	h.grant(object{"user_id": clerk, "rec_type": "invoice", "rec_id": "1", "permissions": []string{"approve"}})
	h.want(403, "rbac.rights_not_held", helper, "PATCH", "/v1/users/"+clerk, status)
	h.grant(object{"user_id": helper, "rec_type": "invoice", "permissions": []string{"approve"}})
	h.want(200, "", helper, "PATCH", "/v1/users/"+clerk, status)
}
