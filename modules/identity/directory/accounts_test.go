package directory_test

import (
	"strings"
	"testing"

	"kontor/server/access"
)

func TestGet_RequiresTheUserOrAGrant(t *testing.T) {
	h := newHarness(t)
	m, other, clerk := h.customer(email(1)), h.customer(email(2)), h.personnel()
	r := h.call(m.token, "GET", m.path(""), nil).want(t, 200, "")
	for _, member := range []string{"id", "display_name", "status", "language", "roles", "created_at", "modified_at", "last_login_at"} {
		if _, ok := r.Body[member]; !ok {
			t.Errorf("%s is missing in %s", member, r.Text)
		}
	}
	if len(r.Body) != 9 || r.Header.Get("ETag") == "" {
		t.Errorf("got %s with ETag %s", r.Text, r.Header.Get("ETag"))
	}
	if s := h.call(m.token, "GET", m.path(""), nil, "If-None-Match", r.Header.Get("ETag")).Status; s != 304 {
		t.Errorf("got %d, want 304", s)
	}
	h.call(other.token, "GET", m.path(""), nil).want(t, 403, "common.rbac_no_rec_access")
	h.call(other.token, "GET", "/v1/users/0193b000-0000-7000-8000-00000000abcd", nil).want(t, 404, "users.user_not_found")
	h.call(clerk.token, "GET", m.path(""), nil).want(t, 200, "")
	h.grant(other.id, "users", "read", m.id)
	h.call(other.token, "GET", m.path(""), nil).want(t, 200, "")
}

func TestList_ShowsReadableUsersOnly(t *testing.T) {
	h := newHarness(t)
	for i := range 25 {
		h.customer(email(i))
	}
	admin, advisor := h.admin(), h.staff("advisor", "Advisor")
	all := h.call(admin.token, "GET", "/v1/users?limit=100", nil).want(t, 200, "")
	if all.Body["total"] != 27.0 || len(all.Body["data"].([]any)) != 27 {
		t.Errorf("got %s", all.Text)
	}
	for _, row := range all.Body["data"].([]any) {
		if roles := row.(map[string]any)["roles"].([]any); len(roles) != 1 {
			t.Errorf("got roles %v", roles)
		}
	}
	own := h.call(advisor.token, "GET", "/v1/users", nil).want(t, 200, "")
	if own.Body["total"] != 1.0 || own.Body["data"].([]any)[0].(map[string]any)["id"] != advisor.id {
		t.Errorf("got %s", own.Text)
	}
	if r := h.call(admin.token, "GET", "/v1/users?search.status=pending", nil).want(t, 200, ""); r.Body["total"] != 0.0 || r.Body["total_unfiltered"] != 27.0 {
		t.Errorf("got %s", r.Text)
	}
	if r := h.call(admin.token, "GET", "/v1/users?stack=status&search.language=en", nil).want(t, 200, ""); !strings.Contains(r.Text, `"keys":["active"]`) {
		t.Errorf("got %s", r.Text)
	}
}

func TestUpdate_ChangesTheLanguage(t *testing.T) {
	h := newHarness(t)
	m, other := h.customer(email(1)), h.customer(email(2))
	etag := h.call(m.token, "GET", m.path(""), nil).Header.Get("ETag")
	h.clock.Advance(otpLife)
	r := h.call(m.token, "PATCH", m.path(""), map[string]any{"language": "it"}, "If-Match", etag).want(t, 200, "")
	if r.text("language") != "it" || r.text("modified_at") != "2026-01-31T08:25:30.123Z" || r.Header.Get("ETag") == etag {
		t.Errorf("got %s", r.Text)
	}
	h.call(m.token, "PATCH", m.path(""), map[string]any{"language": "de"}, "If-Match", etag).want(t, 412, "common.precondition_failed")
	h.call(m.token, "PATCH", m.path(""), map[string]any{"language": "rm"}).want(t, 400, "common.invalid_input")
	h.call(other.token, "PATCH", m.path(""), map[string]any{"language": "de"}).want(t, 403, "common.rbac_no_rec_access")
	if h.audited("users.update", m.id) != 1 {
		t.Error("the audit trail lacks the change")
	}
}

func TestUpdate_IgnoresMembersThatTheCallerMayNotSet(t *testing.T) {
	h := newHarness(t)
	m, clerk := h.customer(email(1)), h.personnel()
	body := map[string]any{"id": clerk.id, "status": "disabled", "roles": []string{"Administrator"}, "role_ids": []string{access.Administrator},
		"created_by": clerk.id, "version": 99, "last_login_at": "2020-01-01T00:00:00Z", "Status": "disabled"}
	for _, who := range []testUser{m, clerk} {
		r := h.call(who.token, "PATCH", m.path(""), body).want(t, 200, "")
		if r.text("status") != "active" || r.text("id") != m.id || len(r.Body["roles"].([]any)) != 1 || r.Body["last_login_at"] != nil {
			t.Errorf("got %s", r.Text)
		}
	}
}

func TestUpdate_StatusByAdministrators(t *testing.T) {
	h := newHarness(t)
	admin, m := h.admin(), h.customer(email(1))
	r := h.call(admin.token, "PATCH", m.path(""), map[string]any{"status": "disabled"}).want(t, 200, "")
	if r.text("status") != "disabled" {
		t.Errorf("got %s", r.Text)
	}
	h.call(m.token, "GET", "/v1/users/me", nil).want(t, 401, "common.unauthorized") // all sessions ended at once
	h.call(admin.token, "PATCH", m.path(""), map[string]any{"status": "pending"}).want(t, 400, "common.invalid_input")
	h.call(admin.token, "PATCH", m.path(""), map[string]any{"status": "gone"}).want(t, 400, "common.invalid_input")
	r = h.call(admin.token, "PATCH", m.path(""), map[string]any{"status": "active"}).want(t, 200, "")
	if r.text("status") != "active" || h.audited("users.status", m.id) != 3 {
		t.Errorf("got %s and %d audit entries", r.Text, h.audited("users.status", m.id))
	}
}

func TestUpdate_KeepsTheLastAdministrator(t *testing.T) {
	h := newHarness(t)
	admin := h.admin()
	h.call(admin.token, "PATCH", admin.path(""), map[string]any{"status": "disabled"}).want(t, 409, "users.last_administrator")
	second := h.staff("second", "Administrator")
	h.call(admin.token, "PATCH", second.path(""), map[string]any{"status": "disabled"}).want(t, 200, "")
	// Disabled administrators do not count.
	h.call(admin.token, "PATCH", admin.path(""), map[string]any{"status": "disabled"}).want(t, 409, "users.last_administrator")
}

func TestRelations_OfUsersAndCredentials(t *testing.T) {
	h := newHarness(t)
	m, other := h.customer(email(1)), h.customer(email(2))
	missing := "0193b000-0000-7000-8000-00000000abcd"
	for recType, ids := range map[access.RecordType][]string{
		access.Users: {m.id, other.id, missing}, access.Credentials: {m.credential, other.credential, missing},
	} {
		found, err := h.service.Records()[recType].Relations(t.Context(), m.id, ids)
		if err != nil || len(found) != 2 {
			t.Fatalf("%s: got %v, %v", recType, found, err)
		}
		if !found[ids[0]].Has(access.Read|access.Update) || found[ids[1]] != access.None {
			t.Errorf("%s: got %v", recType, found)
		}
	}
}
