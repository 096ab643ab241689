package rbac_test

import (
	"testing"

	"kontor/server/access"
	"kontor/store"
)

// A database of an earlier version gets the role with its grants. Advisors and customers lose their initial grants on the same endpoints, and
// keep those that administrators have created. Their service accounts keep what they could call. A role of the bank with the name gets another.
func TestStart_IntroducesEveryone(t *testing.T) {
	h := newHarness(t)
	h.SkipRecordCheck() // SQL writes the former state
	for _, statement := range []string{`DELETE FROM endpoint_grants WHERE principal_id = $1`, `DELETE FROM grant_records WHERE role_id = $1`,
		`DELETE FROM roles WHERE id = $1`} {
		h.exec(statement, access.Everyone)
	}
	machine := h.Admin().Create("/v1/service-accounts", object{"name": "Nightly", "roles": []string{"Advisor"}})
	same := h.role("EVERYONE")
	for _, role := range []string{access.Advisor, access.Customer} {
		for _, key := range []string{"GET /v1/users/me", "POST /v1/rbac/check", "POST /v1/logout"} {
			id := h.grant(object{"role_id": role, "endpoint": key})
			h.exec(`UPDATE grant_records SET created_by = $2 WHERE id = $1`, id, store.NilID)
		}
	}
	h.grant(object{"role_id": access.Customer, "endpoint": "GET /v1/profile"})
	var entries [2]int64
	for i := range entries {
		if err := h.newService().Start(t.Context(), h.endpoints()); err != nil {
			t.Fatal(err)
		}
		h.count(&entries[i])
	}
	if entries[0] != entries[1] {
		t.Errorf("the second start wrote %d entries", entries[1]-entries[0])
	}
	policy := h.Policy.Load()
	for _, e := range h.endpoints() {
		if got := policy.MayCall(access.Everyone, e.Key()); got != e.HeldByEveryone() {
			t.Errorf("everyone may call %s: %t", e.Key(), got)
		}
	}
	for _, c := range []struct {
		principal, key string
		want           bool
	}{
		{access.Advisor, "GET /v1/users/me", false},
		{access.Customer, "POST /v1/rbac/check", false},
		{access.Customer, "GET /v1/profile", true},
		{access.Customer, "GET /v1/payers", true},
		{access.Registrant, "GET /v1/users/me", true},
		{machine, "GET /v1/users/me", true},
		{machine, "POST /v1/rbac/check", true},
		{machine, "POST /v1/logout", false}, // for people only
	} {
		if got := policy.MayCall(c.principal, c.key); got != c.want {
			t.Errorf("%s may call %s: %t", c.principal, c.key, got)
		}
	}
	if name := h.want(200, "", h.root, "GET", "/v1/rbac/roles/"+same, nil).body["name"]; name != "EVERYONE (2)" {
		t.Errorf("the bank's role is %v", name)
	}
}
