package directory_test

import (
	"strings"
	"testing"

	"kontor/server/access"
)

func TestGet_RequiresTheUserOrAGrant(t *testing.T) {
	b := newBank(t)
	m, other, clerk := b.customer(email(1)), b.customer(email(2)), b.personnel()
	r := b.call(m.token, "GET", m.path(""), nil).want(t, 200, "")
	for _, member := range []string{"id", "display_name", "status", "language", "roles", "created_at", "modified_at", "last_login_at"} {
		if _, ok := r.Body[member]; !ok {
			t.Errorf("%s is missing in %s", member, r.Text)
		}
	}
	if len(r.Body) != 8 || r.Header.Get("ETag") == "" {
		t.Errorf("got %s with ETag %s", r.Text, r.Header.Get("ETag"))
	}
	if s := b.call(m.token, "GET", m.path(""), nil, "If-None-Match", r.Header.Get("ETag")).Status; s != 304 {
		t.Errorf("got %d, want 304", s)
	}
	b.call(other.token, "GET", m.path(""), nil).want(t, 403, "common.rbac_no_rec_access")
	b.call(other.token, "GET", "/v1/users/0193b000-0000-7000-8000-00000000abcd", nil).want(t, 404, "users.user_not_found")
	b.call(clerk.token, "GET", m.path(""), nil).want(t, 200, "")
	b.grant(other.id, "users", "read", m.id)
	b.call(other.token, "GET", m.path(""), nil).want(t, 200, "")
}

func TestList_ShowsReadableUsersOnly(t *testing.T) {
	b := newBank(t)
	for i := range 25 {
		b.customer(email(i))
	}
	admin, advisor := b.admin(), b.staff("advisor", "Advisor")
	all := b.call(admin.token, "GET", "/v1/users?limit=100", nil).want(t, 200, "")
	if all.Body["total"] != 27.0 || len(all.Body["data"].([]any)) != 27 {
		t.Errorf("got %s", all.Text)
	}
	for _, row := range all.Body["data"].([]any) {
		if roles := row.(map[string]any)["roles"].([]any); len(roles) != 1 {
			t.Errorf("got roles %v", roles)
		}
	}
	own := b.call(advisor.token, "GET", "/v1/users", nil).want(t, 200, "")
	if own.Body["total"] != 1.0 || own.Body["data"].([]any)[0].(map[string]any)["id"] != advisor.id {
		t.Errorf("got %s", own.Text)
	}
	if r := b.call(admin.token, "GET", "/v1/users?search.status=pending", nil).want(t, 200, ""); r.Body["total"] != 0.0 || r.Body["total_unfiltered"] != 27.0 {
		t.Errorf("got %s", r.Text)
	}
	if r := b.call(admin.token, "GET", "/v1/users?stack=status&search.language=en", nil).want(t, 200, ""); !strings.Contains(r.Text, `"keys":["active"]`) {
		t.Errorf("got %s", r.Text)
	}
}

func TestUpdate_ChangesTheLanguage(t *testing.T) {
	b := newBank(t)
	m, other := b.customer(email(1)), b.customer(email(2))
	etag := b.call(m.token, "GET", m.path(""), nil).Header.Get("ETag")
	b.clock.Advance(otpLife)
	r := b.call(m.token, "PATCH", m.path(""), map[string]any{"language": "it"}, "If-Match", etag).want(t, 200, "")
	if r.text("language") != "it" || r.text("modified_at") != "2026-01-31T08:25:30.123Z" || r.Header.Get("ETag") == etag {
		t.Errorf("got %s", r.Text)
	}
	b.call(m.token, "PATCH", m.path(""), map[string]any{"language": "de"}, "If-Match", etag).want(t, 412, "common.precondition_failed")
	b.call(m.token, "PATCH", m.path(""), map[string]any{"language": "rm"}).want(t, 400, "common.invalid_input")
	b.call(other.token, "PATCH", m.path(""), map[string]any{"language": "de"}).want(t, 403, "common.rbac_no_rec_access")
	if b.audited("users.update", m.id) != 1 {
		t.Error("the audit trail does not tell of it")
	}
}

func TestUpdate_IgnoresMembersThatTheCallerMayNotSet(t *testing.T) {
	b := newBank(t)
	m, clerk := b.customer(email(1)), b.personnel()
	body := map[string]any{"id": clerk.id, "status": "disabled", "roles": []string{"Administrator"}, "role_ids": []string{access.Administrator},
		"created_by": clerk.id, "version": 99, "last_login_at": "2020-01-01T00:00:00Z", "Status": "disabled"}
	for _, who := range []member{m, clerk} {
		r := b.call(who.token, "PATCH", m.path(""), body).want(t, 200, "")
		if r.text("status") != "active" || r.text("id") != m.id || len(r.Body["roles"].([]any)) != 1 || r.Body["last_login_at"] != nil {
			t.Errorf("got %s", r.Text)
		}
	}
}

func TestUpdate_StatusByAdministrators(t *testing.T) {
	b := newBank(t)
	admin, m := b.admin(), b.customer(email(1))
	r := b.call(admin.token, "PATCH", m.path(""), map[string]any{"status": "disabled"}).want(t, 200, "")
	if r.text("status") != "disabled" {
		t.Errorf("got %s", r.Text)
	}
	b.call(m.token, "GET", "/v1/users/me", nil).want(t, 401, "common.unauthorized") // all sessions ended at once
	b.call(admin.token, "PATCH", m.path(""), map[string]any{"status": "pending"}).want(t, 400, "common.invalid_input")
	b.call(admin.token, "PATCH", m.path(""), map[string]any{"status": "gone"}).want(t, 400, "common.invalid_input")
	r = b.call(admin.token, "PATCH", m.path(""), map[string]any{"status": "active"}).want(t, 200, "")
	if r.text("status") != "active" || b.audited("users.status", m.id) != 3 {
		t.Errorf("got %s and %d audit entries", r.Text, b.audited("users.status", m.id))
	}
}

func TestUpdate_KeepsTheLastAdministrator(t *testing.T) {
	b := newBank(t)
	admin := b.admin()
	b.call(admin.token, "PATCH", admin.path(""), map[string]any{"status": "disabled"}).want(t, 409, "users.last_administrator")
	second := b.staff("second", "Administrator")
	b.call(admin.token, "PATCH", second.path(""), map[string]any{"status": "disabled"}).want(t, 200, "")
	// Disabled administrators do not count.
	b.call(admin.token, "PATCH", admin.path(""), map[string]any{"status": "disabled"}).want(t, 409, "users.last_administrator")
}

func TestRelations_OfUsersAndCredentials(t *testing.T) {
	b := newBank(t)
	m, other := b.customer(email(1)), b.customer(email(2))
	missing := "0193b000-0000-7000-8000-00000000abcd"
	for recType, ids := range map[access.RecordType][]string{
		access.Users: {m.id, other.id, missing}, access.Credentials: {m.credential, other.credential, missing},
	} {
		found, err := b.service.Records()[recType].Relations(t.Context(), m.id, ids)
		if err != nil || len(found) != 2 {
			t.Fatalf("%s: got %v, %v", recType, found, err)
		}
		if !found[ids[0]].Has(access.Read|access.Update) || found[ids[1]] != access.None {
			t.Errorf("%s: got %v", recType, found)
		}
	}
}
