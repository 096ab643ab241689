package rbac_test

import (
	"testing"

	"kontor/server/access"
)

func TestPolicy_DeniesEverythingWhileTablesCannotBeRead(t *testing.T) {
	b := newBank(t)
	user, persona := b.user(access.Advisor), b.persona(b.root)
	path := "/v1/personas/" + persona
	b.want(200, "", user, "GET", path, nil)

	b.exec("ALTER TABLE rate_limit_rules RENAME TO broken")
	b.grant(object{"user_id": user, "rec_type": "personas", "permissions": []string{"delete"}})
	b.want(403, "common.rbac_no_rec_access", user, "GET", path, nil)
	b.want(200, "", b.root, "GET", path, nil)

	b.exec("ALTER TABLE broken RENAME TO rate_limit_rules")
	b.grant(object{"user_id": user, "rec_type": "personas", "permissions": []string{"read"}})
	b.want(200, "", user, "DELETE", path, nil)
}

func TestStart_FailsWithoutPolicyTables(t *testing.T) {
	b := newBank(t)
	b.exec("ALTER TABLE rate_limit_rules RENAME TO broken")
	if err := b.newService().Start(t.Context(), b.endpoints()); err == nil {
		t.Error("the service started without a policy")
	}
}
