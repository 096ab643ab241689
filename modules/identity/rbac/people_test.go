package rbac_test

import (
	"net/http"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

func TestAnswers_NameUsers(t *testing.T) {
	s := servertest.Start(t)
	admin, user := s.Admin().Named(t, "Ada Administrator"), s.User(access.Customer).Named(t, "Urs User")
	role := admin.Create("/v1/rbac/roles", map[string]any{"name": "Auditor"})
	grant := map[string]any{"user_id": user.UserID, "rec_type": "payers", "permissions": []string{"read"}}
	admin.Do("POST", "/v1/rbac/grants", grant).Expect(t, http.StatusCreated)
	admin.Do("PUT", "/v1/rate-limits", map[string]any{"endpoint": "GET /v1/payers", "per_minute": 100}).Expect(t, http.StatusOK)
	tag := admin.Do("GET", "/v1/rbac/roles/"+role, nil).Expect(t, http.StatusOK).Header.Get("ETag")
	admin.Named(t, "Berta Administrator")
	for path, want := range map[string][]*servertest.Client{
		"/v1/rbac/roles/" + role: {admin}, "/v1/rbac/roles?search.name=Auditor": {admin}, "/v1/rbac/grants?search.user_id=" + user.UserID: {admin, user},
		"/v1/rate-limits?search.endpoint=" + "GET%20/v1/payers": {admin},
	} {
		people := admin.Do("GET", path, nil).Expect(t, http.StatusOK).People(t)
		if len(people) != len(want) || people[admin.UserID].DisplayName != "Berta Administrator" {
			t.Errorf("%s names %+v", path, people)
		}
		if len(want) == 2 && (people[user.UserID].DisplayName != "Urs User" || people[user.UserID].UserName == "" || people[user.UserID].Staff) {
			t.Errorf("%s: the principal is %+v", path, people[user.UserID])
		}
	}
	admin.With("If-None-Match", tag).Do("GET", "/v1/rbac/roles/"+role, nil).Expect(t, http.StatusNotModified)

	checks := map[string]any{"checks": []map[string]any{{"rec_type": "payers", "permission": "read"}}}
	answer := user.Do("POST", "/v1/rbac/check", checks).Expect(t, http.StatusOK)
	if people := answer.People(t); len(people) != 1 || people[user.UserID].DisplayName != "Urs User" {
		t.Errorf("a decision by a grant to the user names %+v", people)
	}
}
