package app_test

import (
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

// The holders of a role without any grant use their own data. Everything else is refused with its true reason.
func TestOwnData_NeedsNoGrant(t *testing.T) {
	s := servertest.Start(t)
	role := s.Admin().Create("/v1/rbac/roles", map[string]any{"name": "Archivist"})
	holder := s.User(role)
	for _, path := range []string{"/v1/users/me", "/v1/profile", "/v1/profile/preferences", "/v1/profile/views", "/v1/notifications",
		"/v1/notifications/unread-count"} {
		holder.Do("GET", path, nil).Expect(t, 200)
	}
	checks := map[string]any{"checks": []any{map[string]any{"rec_type": "customers", "permission": "read"}}}
	if allowed := holder.Do("POST", "/v1/rbac/check", checks).Expect(t, 200).JSON(t)["results"].([]any)[0].(map[string]any)["allowed"]; allowed != false {
		t.Errorf("a role without grants allows reading customers: %v", allowed)
	}
	holder.Do("PUT", "/v1/profile/preferences", map[string]any{"theme": "dark"}).Expect(t, 200)
	for _, c := range []struct{ method, path, reason, names string }{
		{"GET", "/v1/customers", "endpoint", `"endpoint":"GET /v1/customers"`},
		{"GET", "/v1/users", "endpoint", `"endpoint":"GET /v1/users"`},
	} {
		answer := holder.Do(c.method, c.path, nil)
		answer.ExpectError(t, 403, "common.rbac_no_rec_access")
		if body := answer.Body; !strings.Contains(body, `"reason":"`+c.reason+`"`) || !strings.Contains(body, c.names) {
			t.Errorf("%s %s: got %s", c.method, c.path, body)
		}
	}
	s.Admin().Create("/v1/rbac/grants", map[string]any{"role_id": role, "endpoint": "POST /v1/customers"})
	if body := holder.Do("POST", "/v1/customers", map[string]any{"last_name": "Nobody"}).Body; !strings.Contains(body, `"reason":"permission"`) ||
		!strings.Contains(body, `"permission":"customers:create"`) {
		t.Errorf("without the permission: %s", body)
	}
	if body := s.User().Do("GET", "/v1/customers", nil).Body; !strings.Contains(body, `"reason":"no_role"`) {
		t.Errorf("without a role: %s", body)
	}
	// The notifications of others, and those who have proven no credential, stay out.
	other := s.User(access.Customer)
	s.Admin().Do("POST", "/v1/customers/"+s.Admin().Create("/v1/customers", map[string]any{"last_name": "Notice", "first_name": "A", "email": "a@example.ch"})+"/notify",
		map[string]any{"text": "Please call us.", "user_ids": []string{other.UserID}}).Expect(t, 200)
	if total := holder.Do("GET", "/v1/notifications?search.user_id="+other.UserID, nil).Expect(t, 200).JSON(t)["total"]; total != float64(0) {
		t.Errorf("the holder reads %v notifications of others", total)
	}
	registrant := s.User(access.Registrant)
	registrant.Do("GET", "/v1/users/me", nil).Expect(t, 200)
	for _, path := range []string{"/v1/profile", "/v1/notifications"} {
		registrant.Do("GET", path, nil).ExpectError(t, 403, "common.rbac_no_rec_access")
	}
	holder.Do("POST", "/v1/logout", nil).Expect(t, 200)
}
