package personas_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

func TestAccess_OwnersUsersGranteesAndStaff(t *testing.T) {
	s := servertest.Start(t)
	owner, other, linked, advisor := s.User(access.Customer), s.User(access.Customer), s.User(access.Customer), s.User(access.Advisor)
	id, another := newPersona(owner), newPersona(s.Admin())
	path, missing := "/v1/personas/"+id, "/v1/personas/"+store.NewID()
	s.Admin().Do("POST", path+"/users", map[string]any{"user_id": linked.UserID}).Expect(t, http.StatusCreated)
	link := map[string]any{"linked_persona_id": another, "relation": "spouse"}
	user := map[string]any{"user_id": other.UserID}
	type call struct {
		method, path string
		body         any
	}
	calls := []call{
		{"GET", path, nil}, {"GET", path + "/users", nil}, {"GET", path + "/links", nil},
		{"PUT", path, ada()}, {"POST", path + "/links", link}, {"DELETE", path + "/links/" + store.NewID(), nil},
		{"DELETE", path + "/users/" + store.NewID(), nil}, {"POST", path + "/users", map[string]any{"user_id": linked.UserID}},
		{"DELETE", path, nil},
	}
	for _, c := range []struct {
		name   string
		as     *servertest.Client
		status []int // of the calls in order
	}{
		// The owner may update the persona but not read the one to link: also 403.
		{"anonymous", s.Anonymous(), []int{401, 401, 401, 401, 401, 401, 401, 401, 401}},
		{"api key", s.Keyed(), []int{401, 401, 401, 401, 401, 401, 401, 401, 401}},
		{"registrant", s.User(access.Registrant), []int{403, 403, 403, 403, 403, 403, 403, 403, 403}},
		{"other", other, []int{403, 403, 403, 403, 403, 403, 403, 403, 403}},
		{"linked", linked, []int{200, 200, 200, 403, 403, 403, 403, 403, 403}},
		{"advisor", advisor, []int{200, 200, 200, 200, 201, 404, 404, 409, 403}},
		{"owner", owner, []int{200, 200, 200, 200, 403, 404, 404, 409, 200}},
		{"administrator", s.Admin(), []int{200, 200, 200, 200, 409, 404, 404, 409, 200}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i, call := range calls {
				answer := c.as.Do(call.method, call.path, call.body)
				if answer.Status != c.status[i] {
					t.Errorf("%s %s: got %d %s, want %d", call.method, call.path, answer.Status, answer.Body, c.status[i])
				}
				if answer.Status == 403 && (!strings.Contains(answer.Body, `"common.rbac_no_rec_access"`) || strings.Contains(answer.Body, "Muster")) {
					t.Errorf("%s %s: rejected with %s", call.method, call.path, answer.Body)
				}
			}
		})
	}
	for _, call := range calls {
		gone := strings.Replace(call.path, path, missing, 1)
		if answer := other.Do(call.method, gone, call.body); answer.Status != 404 || answer.JSON(t)["code"] != "personas.persona_not_found" {
			t.Errorf("%s %s: got %d %s, want 404", call.method, gone, answer.Status, answer.Body)
		}
		bad := strings.Replace(call.path, id, "12", 1)
		if answer := other.Do(call.method, bad, call.body); answer.Status != 400 || !strings.Contains(answer.Body, `"persona_id"`) {
			t.Errorf("%s %s: got %d %s, want 400", call.method, bad, answer.Status, answer.Body)
		}
	}
	grant := map[string]any{"user_id": other.UserID, "rec_type": "personas", "permissions": []string{"read", "update"}, "rec_id": id}
	granted := s.Admin().Do("POST", "/v1/rbac/grants", grant).Expect(t, http.StatusCreated)
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "a grant allows reading at once", As: other, Method: "GET", Path: path, Status: 200},
		{Name: "and listing", As: other, Method: "GET", Path: "/v1/personas", Status: 200, Contains: []string{id, `"total":1`}},
		{Name: "and linking the grantee", As: other, Method: "POST", Path: path + "/users", Body: user, Status: 201},
		{Name: "but not deleting", As: other, Method: "DELETE", Path: path, Status: 403},
	})
	s.Admin().Do("DELETE", "/v1/rbac/grants/"+granted.JSON(t)["id"].(string), nil).Expect(t, http.StatusOK)
	other.Do("PUT", path, ada()).Expect(t, http.StatusForbidden)
	other.Do("GET", path, nil).Expect(t, http.StatusOK) // by the link
}

func TestCheck_ReportsRelationsToAPersona(t *testing.T) {
	s := servertest.Start(t)
	owner, linked := s.User(access.Customer), s.User(access.Customer)
	id := newPersona(owner)
	s.Admin().Do("POST", "/v1/personas/"+id+"/users", map[string]any{"user_id": linked.UserID}).Expect(t, http.StatusCreated)
	var checks []map[string]any
	for _, permission := range []string{"read", "update", "delete"} {
		checks = append(checks, map[string]any{"rec_type": "personas", "permission": permission, "rec_id": id})
	}
	for _, c := range []struct {
		as   *servertest.Client
		want string
	}{{owner, "true true true"}, {linked, "true false false"}, {s.User(access.Customer), "false false false"}} {
		var answer struct {
			Results []struct{ Allowed bool } `json:"results"`
		}
		c.as.Do("POST", "/v1/rbac/check", map[string]any{"checks": checks}).Expect(t, http.StatusOK).Into(t, &answer)
		if got := fmt.Sprint(answer.Results[0].Allowed, answer.Results[1].Allowed, answer.Results[2].Allowed); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestList_FiltersSortsAndCountsVisiblePersonas(t *testing.T) {
	s := servertest.Start(t)
	owner := s.User(access.Customer)
	for i, name := range []string{"Ängst", "ANGST", "Zbinden"} {
		s.Clock.Advance(1e6)
		owner.Do("POST", "/v1/personas", ada().With("last_name", name, "hash_id", fmt.Sprintf("aB%d", i), "date_of_birth", fmt.Sprintf("199%d-01-01", i),
			"nationality", []string{"CHE", "DEU", "ITA"}[i])).Expect(t, http.StatusCreated)
	}
	newPersona(s.Admin())
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "only own personas", As: owner, Method: "GET", Path: "/v1/personas", Status: 200, Contains: []string{`"total":3,"total_unfiltered":3,"has_more":false`}},
		{Name: "all personas for staff", As: s.User(access.Advisor), Method: "GET", Path: "/v1/personas?limit=3", Status: 200, Contains: []string{`"total":4,"total_unfiltered":4,"has_more":true`}},
		{Name: "ignoring case", As: owner, Method: "GET", Path: "/v1/personas?search.last_name=%C3%A4NGST", Status: 200, Contains: []string{`"total":1,`, "Ängst"}},
		{Name: "a hash exactly", As: owner, Method: "GET", Path: "/v1/personas?search.hash_id=aB1", Status: 200, Contains: []string{`"total":1,`, "ANGST"}},
		{Name: "not in another case", As: owner, Method: "GET", Path: "/v1/personas?search.hash_id=ab1", Status: 200, Contains: []string{`"total":0,`}},
		{Name: "a range of dates of birth", As: owner, Method: "GET", Path: "/v1/personas?search.date_of_birth=1991-01-01..&sort=-date_of_birth&limit=1", Status: 200,
			Contains: []string{`"total":2,`, "Zbinden", `"has_more":true`}},
		{Name: "a nationality", As: owner, Method: "GET", Path: "/v1/personas?search.nationality=DEU,ITA", Status: 200, Contains: []string{`"total":2,`}},
		{Name: "an unknown filter", As: owner, Method: "GET", Path: "/v1/personas?search.secret=1", Status: 500, Contains: []string{`"query_m.invalid_search_field"`}},
		{Name: "an unknown sort field", As: owner, Method: "GET", Path: "/v1/personas?sort=secret", Status: 400, Contains: []string{`"query_m.invalid_sort_field"`}},
		{Name: "in groups", As: owner, Method: "GET", Path: "/v1/personas?stack=nationality", Status: 200, Contains: []string{`"keys":["CHE","DEU","ITA"]`}},
	})
}
