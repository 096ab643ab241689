package personas_test

import (
	"net/http"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

// ada returns the smallest valid persona.
func ada() servertest.Body {
	return servertest.Body{"first_name": "Ada", "last_name": "Muster", "date_of_birth": "1990-02-28"}
}

// newPersona creates a persona and returns its id.
func newPersona(c *servertest.Client) string {
	return c.Create("/v1/personas", ada())
}

func TestCreate_ReturnsTheWholeRecord(t *testing.T) {
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
		t.Errorf("read %s, created %s", read.Body, answer.Body)
	}
	advisor.With("If-None-Match", read.Header.Get("ETag")).Do("GET", "/v1/personas/"+got["id"].(string), nil).Expect(t, http.StatusNotModified)
}

func TestCreate_SetsDefaults(t *testing.T) {
	s := servertest.Start(t)
	answer := s.Admin().Do("POST", "/v1/personas", ada().With("nationality", nil, "date_of_death", nil)).Expect(t, http.StatusCreated)
	for _, want := range []string{`"date_of_death":null`, `"nationality":null`, `"hash_id":null`, `"metadata":{}`, `"active":true`} {
		if !strings.Contains(answer.Body, want) {
			t.Errorf("%s lacks %s", answer.Body, want)
		}
	}
}

func TestCreate_ReportsAllWrongFieldsInTheRequestedLanguage(t *testing.T) {
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

func TestCreate_RejectsInvalidPersonas(t *testing.T) {
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
		t.Errorf("%v personas were created", total)
	}
	s.Admin().Do("POST", "/v1/personas", ada().With("date_of_birth", "2026-01-31", "date_of_death", "2026-01-31", "first_name", strings.Repeat("ü", 100))).
		Expect(t, http.StatusCreated) // the limits themselves are allowed
}

func TestCreate_ReplaysTheAnswerForTheSameIdempotencyKey(t *testing.T) {
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
		{Name: "active is set to false", As: admin, Method: "PUT", Path: path, Body: ada().With("active", false), Status: 200, Contains: []string{`"active":false`}},
		{Name: "and keeps its value", As: admin, Method: "PUT", Path: path, Body: ada(), Status: 200, Contains: []string{`"active":false`, `{"a":1}`}},
		{Name: "null does not change it", As: admin, Method: "PUT", Path: path, Body: ada().With("active", nil), Status: 200, Contains: []string{`"active":false`}},
		{Name: "and active again, without metadata", As: admin, Method: "PUT", Path: path, Body: ada().With("active", true, "metadata", map[string]any{}), Status: 200,
			Contains: []string{`"active":true`, `"metadata":{}`}},
		{Name: "a stale ETag is rejected", As: admin.With("If-Match", made.Header.Get("ETag")), Method: "PUT", Path: path, Body: ada(), Status: 412,
			Contains: []string{`"common.precondition_failed"`}},
		{Name: "also by DELETE", As: admin.With("If-Match", made.Header.Get("ETag")), Method: "DELETE", Path: path, Status: 412},
	})
}

func TestArchive_KeepsThePersonaAsInactive(t *testing.T) {
	s := servertest.Start(t)
	owner := s.User(access.Customer)
	id := newPersona(owner)
	path := "/v1/personas/" + id
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "confirmed in the requested language", As: owner.With("Accept-Language", "fr"), Method: "DELETE", Path: path, Status: 200,
			Contains: []string{`{"message":"La personne a été désactivée."}`}},
		{Name: "still readable", As: owner, Method: "GET", Path: path, Status: 200, Contains: []string{`"active":false`}},
		{Name: "and found as inactive", As: owner, Method: "GET", Path: "/v1/personas?search.active=false", Status: 200, Contains: []string{id, `"total":1`}},
		{Name: "not as active", As: owner, Method: "GET", Path: "/v1/personas?search.active=true", Status: 200, Contains: []string{`"data":[]`}},
		{Name: "archiving again changes nothing", As: owner, Method: "DELETE", Path: path, Status: 200},
	})
	if etag := owner.Do("GET", path, nil).Header.Get("ETag"); etag != `"v2"` {
		t.Errorf("the ETag is %s, want the one after one change", etag)
	}
	trail := s.Admin().Do("GET", "/v1/audit?search.action=personas.archive,personas.create", nil)
	if total := trail.JSON(t)["total"]; total != 2.0 {
		t.Errorf("the audit trail has %v entries, want 2: %s", total, trail.Body)
	}
}
