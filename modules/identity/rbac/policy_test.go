package rbac_test

import (
	"testing"

	"kontor/server/access"
)

func TestPolicy_DeniesEverythingWhileTablesCannotBeRead(t *testing.T) {
	h := newHarness(t)
	user, persona := h.user(access.Advisor), h.persona(h.root)
	path := "/v1/personas/" + persona
	h.want(200, "", user, "GET", path, nil)

	h.exec("ALTER TABLE rate_limit_rules RENAME TO broken")
	h.grant(object{"user_id": user, "rec_type": "personas", "permissions": []string{"delete"}})
	h.want(403, "common.rbac_no_rec_access", user, "GET", path, nil)
	h.want(200, "", h.root, "GET", path, nil)

	h.exec("ALTER TABLE broken RENAME TO rate_limit_rules")
	h.grant(object{"user_id": user, "rec_type": "personas", "permissions": []string{"read"}})
	h.want(200, "", user, "DELETE", path, nil)
}

func TestStart_FailsWithoutPolicyTables(t *testing.T) {
	h := newHarness(t)
	h.exec("ALTER TABLE rate_limit_rules RENAME TO broken")
	if err := h.newService().Start(t.Context(), h.endpoints()); err == nil {
		t.Error("the service started without a policy")
	}
}
