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

// ada is the least that a persona needs.
func ada() servertest.Body {
	return servertest.Body{"first_name": "Ada", "last_name": "Muster", "date_of_birth": "1990-02-28"}
}

// newPersona enters a persona and gives its id.
func newPersona(c *servertest.Client) string {
	return c.Create("/v1/personas", ada())
}

func TestCreate_GivesTheWholeRecord(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	answer := advisor.Do("POST", "/v1/personas", map[string]any{
		"first_name": " Zoë ", "last_name": "Müller-Čapek", "date_of_birth": "1930-02-28", "date_of_death": "2020-02-29", "nationality": "CHE",
		"hash_id": "aB3", "metadata": map[string]any{"b": []int{1}, "a": nil}, "id": "mine", "created_by": "me", "modified_at": "2000-01-01",
	}).Expect(t, http.StatusCreated)
	got := answer.JSON(t)
	for member, want := range map[string]any{"first_name": "Zoë", "last_name": "Müller-Čapek", "date_of_birth": "1930-02-28",
		"date_of_death": "2020-02-29", "nationality": "CHE", "hash_id": "aB3", "active": true, "created_by": advisor.UserID,
		"modified_by": advisor.UserID, "created_at": "2026-01-31T08:15:30.123Z", "modified_at": "2026-01-31T08:15:30.123Z"} {
		if got[member] != want {
			t.Errorf("%s is %v, want %v", member, got[member], want)
		}
	}
	if got["id"] == "mine" || answer.Header.Get("ETag") == "" || !strings.Contains(answer.Body, `"metadata":{"a":null,"b":[1]}`) {
		t.Errorf("got %s with ETag %q", answer.Body, answer.Header.Get("ETag"))
	}
	read := advisor.Do("GET", "/v1/personas/"+got["id"].(string), nil).Expect(t, http.StatusOK)
	if read.Body != answer.Body || read.Header.Get("ETag") != answer.Header.Get("ETag") {
		t.Errorf("read as %s, made as %s", read.Body, answer.Body)
	}
	advisor.With("If-None-Match", read.Header.Get("ETag")).Do("GET", "/v1/personas/"+got["id"].(string), nil).Expect(t, http.StatusNotModified)
}

func TestCreate_LeavesOutWhatIsNotGiven(t *testing.T) {
	s := servertest.Start(t)
	answer := s.Admin().Do("POST", "/v1/personas", ada().With("nationality", nil, "date_of_death", nil)).Expect(t, http.StatusCreated)
	for _, want := range []string{`"date_of_death":null`, `"nationality":null`, `"hash_id":null`, `"metadata":{}`, `"active":true`} {
		if !strings.Contains(answer.Body, want) {
			t.Errorf("%s lacks %s", answer.Body, want)
		}
	}
}

func TestCreate_ReportsAllWrongFieldsInTheLanguage(t *testing.T) {
	s := servertest.Start(t)
	answer := s.Admin().With("Accept-Language", "it").Do("POST", "/v1/personas", map[string]any{
		"first_name": "", "last_name": strings.Repeat("x", 101), "date_of_birth": "2026-02-01", "date_of_death": "1990-02-30", "nationality": "che",
		"hash_id": 5, "active": "yes", "metadata": []int{1},
	}).Expect(t, http.StatusBadRequest).JSON(t)
	details := answer["details"].(map[string]any)
	for _, field := range []string{"first_name", "last_name", "date_of_birth", "date_of_death", "nationality", "hash_id", "active", "metadata"} {
		if text, _ := details[field].(string); text == "" || strings.HasPrefix(text, "invalid.") {
			t.Errorf("details of %s: %q", field, text)
		}
	}
	if answer["code"] != "common.invalid_input" || details["date_of_birth"] != "La data non può essere nel futuro." {
		t.Errorf("got %v", answer)
	}
}

func TestCreate_RefusesWhatCannotBe(t *testing.T) {
	s := servertest.Start(t)
	for name, c := range map[string]struct {
		field string
		body  map[string]any
	}{
		"no names":              {"last_name", map[string]any{"first_name": "Ada", "date_of_birth": "1990-01-01"}},
		"blank names":           {"first_name", ada().With("first_name", "  ")},
		"a line break":          {"first_name", ada().With("first_name", "A\nB")},
		"no birth":              {"date_of_birth", ada().With("date_of_birth", nil)},
		"a day that is not":     {"date_of_birth", ada().With("date_of_birth", "2025-02-29")},
		"a time":                {"date_of_birth", ada().With("date_of_birth", "1990-01-01T00:00:00Z")},
		"birth tomorrow":        {"date_of_birth", ada().With("date_of_birth", "2026-02-01")},
		"death before birth":    {"date_of_death", ada().With("date_of_death", "1990-02-27")},
		"death tomorrow":        {"date_of_death", ada().With("date_of_death", "2026-02-01")},
		"an empty death":        {"date_of_death", ada().With("date_of_death", "")},
		"no such country":       {"nationality", ada().With("nationality", "XXX")},
		"an alpha-2 code":       {"nationality", ada().With("nationality", "CH")},
		"an empty country":      {"nationality", ada().With("nationality", "")},
		"a long hash":           {"hash_id", ada().With("hash_id", strings.Repeat("a", 257))},
		"metadata that is text": {"metadata", ada().With("metadata", "x")},
		"large metadata":        {"metadata", ada().With("metadata", map[string]any{"a": strings.Repeat("a", 17<<10)})},
	} {
		t.Run(name, func(t *testing.T) {
			answer := s.Admin().Do("POST", "/v1/personas", c.body)
			details, _ := answer.JSON(t)["details"].(map[string]any)
			if answer.Status != 400 || len(details) != 1 || details[c.field] == nil {
				t.Errorf("got %d %s, want 400 naming %s alone", answer.Status, answer.Body, c.field)
			}
		})
	}
	if total := s.Admin().Do("GET", "/v1/personas", nil).JSON(t)["total"]; total != 0.0 {
		t.Errorf("%v personas were made", total)
	}
	s.Admin().Do("POST", "/v1/personas", ada().With("date_of_birth", "2026-01-31", "date_of_death", "2026-01-31", "first_name", strings.Repeat("ü", 100))).
		Expect(t, http.StatusCreated) // the limits themselves are allowed
}

func TestCreate_AnswersTheSameKeyWithTheSamePersona(t *testing.T) {
	s := servertest.Start(t)
	c := s.Admin().With("Idempotency-Key", "one")
	first := c.Do("POST", "/v1/personas", ada()).Expect(t, http.StatusCreated)
	again := c.Do("POST", "/v1/personas", ada()).Expect(t, http.StatusCreated)
	if total := s.Admin().Do("GET", "/v1/personas", nil).JSON(t)["total"]; first.Body != again.Body || total != 1.0 {
		t.Errorf("got %s and then %s; there are %v", first.Body, again.Body, total)
	}
	if answer := c.Do("POST", "/v1/personas", ada().With("hash_id", "x")); answer.Status != 422 {
		t.Errorf("another body: got %d %s", answer.Status, answer.Body)
	}
}

func TestUpdate_ReplacesDataAndKeepsMetadataAndActive(t *testing.T) {
	s := servertest.Start(t)
	admin, advisor := s.Admin(), s.User(access.Advisor)
	made := admin.Do("POST", "/v1/personas", ada().With("nationality", "CHE", "hash_id", "h", "metadata", map[string]any{"a": 1})).Expect(t, http.StatusCreated)
	path := "/v1/personas/" + made.JSON(t)["id"].(string)
	s.Clock.Advance(1e9)
	got := advisor.Do("PUT", path, ada().With("last_name", "Beispiel", "created_by", "x")).Expect(t, http.StatusOK)
	for _, want := range []string{`"last_name":"Beispiel"`, `"nationality":null`, `"hash_id":null`, `"metadata":{"a":1}`, `"active":true`,
		`"created_by":"` + admin.UserID, `"modified_by":"` + advisor.UserID, `"created_at":"2026-01-31T08:15:30.123Z"`, `"modified_at":"2026-01-31T08:15:31.123Z"`} {
		if !strings.Contains(got.Body, want) {
			t.Errorf("%s lacks %s", got.Body, want)
		}
	}
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "active alone is not enough", As: admin, Method: "PUT", Path: path, Body: map[string]any{"active": false}, Status: 400,
			Contains: []string{`"first_name"`, `"last_name"`, `"date_of_birth"`}},
		{Name: "it becomes inactive", As: admin, Method: "PUT", Path: path, Body: ada().With("active", false), Status: 200, Contains: []string{`"active":false`}},
		{Name: "and stays so", As: admin, Method: "PUT", Path: path, Body: ada(), Status: 200, Contains: []string{`"active":false`, `{"a":1}`}},
		{Name: "null leaves it as it is", As: admin, Method: "PUT", Path: path, Body: ada().With("active", nil), Status: 200, Contains: []string{`"active":false`}},
		{Name: "and active again, without metadata", As: admin, Method: "PUT", Path: path, Body: ada().With("active", true, "metadata", map[string]any{}), Status: 200,
			Contains: []string{`"active":true`, `"metadata":{}`}},
		{Name: "a stale copy is refused", As: admin.With("If-Match", made.Header.Get("ETag")), Method: "PUT", Path: path, Body: ada(), Status: 412,
			Contains: []string{`"common.precondition_failed"`}},
		{Name: "also for a deletion", As: admin.With("If-Match", made.Header.Get("ETag")), Method: "DELETE", Path: path, Status: 412},
	})
}

func TestArchive_KeepsThePersonaAsInactive(t *testing.T) {
	s := servertest.Start(t)
	owner := s.User(access.Customer)
	id := newPersona(owner)
	path := "/v1/personas/" + id
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "it is confirmed in the language", As: owner.With("Accept-Language", "fr"), Method: "DELETE", Path: path, Status: 200,
			Contains: []string{`{"message":"Le persona est désormais inactif."}`}},
		{Name: "it is still there", As: owner, Method: "GET", Path: path, Status: 200, Contains: []string{`"active":false`}},
		{Name: "and found as inactive", As: owner, Method: "GET", Path: "/v1/personas?search.active=false", Status: 200, Contains: []string{id, `"total":1`}},
		{Name: "not as active", As: owner, Method: "GET", Path: "/v1/personas?search.active=true", Status: 200, Contains: []string{`"data":[]`}},
		{Name: "once more changes nothing", As: owner, Method: "DELETE", Path: path, Status: 200},
	})
	if etag := owner.Do("GET", path, nil).Header.Get("ETag"); etag != `"v2"` {
		t.Errorf("the ETag is %s, want that after one change", etag)
	}
	trail := s.Admin().Do("GET", "/v1/audit?search.action=personas.archive,personas.create", nil)
	if total := trail.JSON(t)["total"]; total != 2.0 {
		t.Errorf("the audit trail has %v entries, want 2: %s", total, trail.Body)
	}
}

func TestRecords_AreForOwnersUsersGrantsAndStaff(t *testing.T) {
	s := servertest.Start(t)
	owner, other, linked, advisor := s.User(access.Customer), s.User(access.Customer), s.User(access.Customer), s.User(access.Advisor)
	id, another := newPersona(owner), newPersona(s.Admin())
	path, missing := "/v1/personas/"+id, "/v1/personas/"+store.NewID()
	owner.Do("POST", path+"/users", map[string]any{"user_id": linked.UserID}).Expect(t, http.StatusCreated)
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
		// The owner may change his persona, but not see the one he would link to it: 403 as well.
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
					t.Errorf("%s %s: refused with %s", call.method, call.path, answer.Body)
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
		{Name: "a grant lets him read at once", As: other, Method: "GET", Path: path, Status: 200},
		{Name: "and list", As: other, Method: "GET", Path: "/v1/personas", Status: 200, Contains: []string{id, `"total":1`}},
		{Name: "and add himself", As: other, Method: "POST", Path: path + "/users", Body: user, Status: 201},
		{Name: "but not delete", As: other, Method: "DELETE", Path: path, Status: 403},
	})
	s.Admin().Do("DELETE", "/v1/rbac/grants/"+granted.JSON(t)["id"].(string), nil).Expect(t, http.StatusOK)
	other.Do("PUT", path, ada()).Expect(t, http.StatusForbidden)
	other.Do("GET", path, nil).Expect(t, http.StatusOK) // his own identity now
}

func TestCheck_TellsWhatSomebodyIsToAPersona(t *testing.T) {
	s := servertest.Start(t)
	owner, linked := s.User(access.Customer), s.User(access.Customer)
	id := newPersona(owner)
	owner.Do("POST", "/v1/personas/"+id+"/users", map[string]any{"user_id": linked.UserID}).Expect(t, http.StatusCreated)
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

func TestList_FiltersSortsAndCountsWhatTheCallerSees(t *testing.T) {
	s := servertest.Start(t)
	owner := s.User(access.Customer)
	for i, name := range []string{"Ängst", "ANGST", "Zbinden"} {
		s.Clock.Advance(1e6)
		owner.Do("POST", "/v1/personas", ada().With("last_name", name, "hash_id", fmt.Sprintf("aB%d", i), "date_of_birth", fmt.Sprintf("199%d-01-01", i),
			"nationality", []string{"CHE", "DEU", "ITA"}[i])).Expect(t, http.StatusCreated)
	}
	newPersona(s.Admin())
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "own ones only", As: owner, Method: "GET", Path: "/v1/personas", Status: 200, Contains: []string{`"total":3,"total_unfiltered":3,"has_more":false`}},
		{Name: "all for staff", As: s.User(access.Advisor), Method: "GET", Path: "/v1/personas?limit=3", Status: 200, Contains: []string{`"total":4,"total_unfiltered":4,"has_more":true`}},
		{Name: "without regard to case", As: owner, Method: "GET", Path: "/v1/personas?search.last_name=%C3%A4NGST", Status: 200, Contains: []string{`"total":1,`, "Ängst"}},
		{Name: "a hash exactly", As: owner, Method: "GET", Path: "/v1/personas?search.hash_id=aB1", Status: 200, Contains: []string{`"total":1,`, "ANGST"}},
		{Name: "not in another case", As: owner, Method: "GET", Path: "/v1/personas?search.hash_id=ab1", Status: 200, Contains: []string{`"total":0,`}},
		{Name: "a span of births", As: owner, Method: "GET", Path: "/v1/personas?search.date_of_birth=1991-01-01..&sort=-date_of_birth&limit=1", Status: 200,
			Contains: []string{`"total":2,`, "Zbinden", `"has_more":true`}},
		{Name: "a nationality", As: owner, Method: "GET", Path: "/v1/personas?search.nationality=DEU,ITA", Status: 200, Contains: []string{`"total":2,`}},
		{Name: "an unknown filter", As: owner, Method: "GET", Path: "/v1/personas?search.secret=1", Status: 500, Contains: []string{`"query_m.invalid_search_field"`}},
		{Name: "an unknown order", As: owner, Method: "GET", Path: "/v1/personas?sort=secret", Status: 400, Contains: []string{`"query_m.invalid_sort_field"`}},
		{Name: "in groups", As: owner, Method: "GET", Path: "/v1/personas?stack=nationality", Status: 200, Contains: []string{`"keys":["CHE","DEU","ITA"]`}},
	})
}
