package directory_test

import (
	"context"
	"testing"

	"kontor/server/access"
	"kontor/store"
)

// grant inserts a grant of a permission on one record to a user.
func (h *harness) grant(userID, recType, permission, recID string) {
	h.t.Helper()
	h.exec(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO grants (id, principal_kind, principal_id, rec_type, permission, rec_id, created_at, created_by)
			VALUES ($1, 'user', $2, $3, $4, $5, 0, '')`, store.NewID(), userID, recType, permission, recID)
		return err
	})
}

// personnel creates a user who may change users without being an administrator.
func (h *harness) personnel() testUser {
	h.t.Helper()
	h.exec(func(ctx context.Context, tx *store.Tx) error { return insertRole(ctx, tx, personnel, "Personnel") })
	return h.staff("clerk", "Personnel", "Advisor")
}

func roles(names ...string) map[string]any {
	return map[string]any{"roles": append([]string{}, names...)}
}

func TestSetRoles_ByNameOrID(t *testing.T) {
	h := newHarness(t)
	admin, m := h.admin(), h.customer(email(1))
	etag := h.call(admin.token, "GET", m.path(""), nil).Header.Get("ETag")
	r := h.call(admin.token, "PUT", m.path("/roles"), roles("advisor", access.Advisor, access.Customer), "If-Match", etag).want(t, 200, "")
	got := r.Body["roles"].([]any)
	if len(got) != 2 || got[0] != "Advisor" || got[1] != "Customer" || r.Header.Get("ETag") == etag {
		t.Errorf("got %s", r.Text)
	}
	h.call(admin.token, "PUT", m.path("/roles"), roles("Advisor"), "If-Match", etag).want(t, 412, "common.precondition_failed")
	if me := h.call(m.token, "GET", "/v1/users/me", nil).want(t, 200, ""); len(me.Body["roles"].([]any)) != 2 {
		t.Errorf("got %s", me.Text)
	}
	if h.audited("users.roles", m.id) != 1 || h.auth.changed[len(h.auth.changed)-1] != m.id {
		t.Error("the audit trail lacks the change, or auth was not notified")
	}
	before := len(h.auth.changed)
	h.call(admin.token, "PUT", m.path("/roles"), roles("Customer", "Advisor")).want(t, 200, "") // the same roles
	if h.audited("users.roles", m.id) != 1 || len(h.auth.changed) != before {
		t.Error("the audit trail or auth got a change although the roles are the same")
	}
	h.call(admin.token, "PUT", m.path("/roles"), roles()).want(t, 200, "")
	h.call(m.token, "GET", "/v1/users/me", nil).want(t, 200, "") // by the role Everyone
}

func TestSetRoles_RejectsInvalidInput(t *testing.T) {
	h := newHarness(t)
	admin, m := h.admin(), h.customer(email(1))
	r := h.call(admin.token, "PUT", m.path("/roles"), roles("Advisor", "Emperor", "0193b000-0000-7000-8000-00000000abcd")).want(t, 400, "common.invalid_input")
	if details := r.member("details"); details.text("roles.1") == "" || details.text("roles.2") == "" || details.text("roles.0") != "" {
		t.Errorf("got %s", r.Text)
	}
	h.call(admin.token, "PUT", m.path("/roles"), map[string]any{}).want(t, 400, "common.invalid_input")
	h.call(admin.token, "PUT", m.path("/roles"), map[string]any{"roles": "Advisor"}).want(t, 400, "common.invalid_input")
	h.call(m.token, "PUT", m.path("/roles"), roles("Administrator")).want(t, 403, "common.rbac_no_rec_access")
	h.call(admin.token, "PUT", "/v1/users/0193b000-0000-7000-8000-00000000abcd/roles", roles()).want(t, 404, "users.user_not_found")
}

func TestSetRoles_RequiresTheRolesThatChange(t *testing.T) {
	h := newHarness(t)
	admin, clerk, m := h.admin(), h.personnel(), h.customer(email(1))
	h.call(clerk.token, "PUT", m.path("/roles"), roles("Customer", "Advisor")).want(t, 200, "")
	h.call(clerk.token, "PUT", m.path("/roles"), roles("Customer", "Advisor", "Administrator")).want(t, 403, "rbac.grant_not_held")
	h.call(clerk.token, "PUT", m.path("/roles"), roles("Advisor")).want(t, 403, "rbac.grant_not_held") // the clerk may not take the role Customer away
	h.staff("second", "Administrator")
	h.call(clerk.token, "PUT", admin.path("/roles"), roles("Advisor")).want(t, 403, "rbac.grant_not_held")
	if r := h.call(admin.token, "GET", m.path(""), nil); len(r.Body["roles"].([]any)) != 2 {
		t.Errorf("a rejected change was stored: %s", r.Text)
	}
}

func TestSetRoles_RejectsTheCallersOwnRoles(t *testing.T) {
	h := newHarness(t)
	admin, clerk := h.admin(), h.personnel()
	h.call(clerk.token, "PUT", clerk.path("/roles"), roles("Personnel")).want(t, 403, "common.rbac_no_rec_access")
	h.call(admin.token, "PUT", admin.path("/roles"), roles("Administrator", "Advisor")).want(t, 403, "common.rbac_no_rec_access")
	h.call(admin.token, "PUT", admin.path("/roles"), roles("Advisor")).want(t, 409, "users.last_administrator")
	second := h.staff("second", "Administrator")
	h.call(admin.token, "PUT", admin.path("/roles"), roles("Advisor")).want(t, 403, "common.rbac_no_rec_access")
	h.call(admin.token, "PUT", second.path("/roles"), roles("Advisor")).want(t, 200, "")
}
