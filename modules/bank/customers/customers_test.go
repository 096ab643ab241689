package customers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

// ada returns the smallest customer who can be verified.
func ada() servertest.Body {
	return servertest.Body{"first_name": "Ada", "last_name": "Muster", "email": "ada@example.ch", "date_of_birth": "1985-06-15", "nationality": "CHE",
		"address": map[string]any{"city": "Zürich", "country": "CH"}}
}

// newCustomer creates a customer and returns its id.
func newCustomer(c *servertest.Client) string {
	return c.Create("/v1/customers", ada())
}

func TestCreate_ReturnsTheWholeRecord(t *testing.T) {
	s := servertest.Start(t)
	answer := s.User(access.Advisor).Do("POST", "/v1/customers", map[string]any{
		"first_name": " Zoë ", "last_name": "Müller-Čapek", "email": "Zoe@Example.CH", "phone": "044 668 18 00", "date_of_birth": "1990-02-28",
		"nationality": "CHE", "address": map[string]any{"street": "Bahnhofstrasse 1", "city": "Zürich", "postal_code": "8001", "country": "CH"},
		"metadata": map[string]any{"b": []int{1}, "a": nil}, "id": "mine", "kyc_status": "verified", "verification_level": "enhanced", "created_by": "me",
	}).Expect(t, http.StatusCreated)
	got := answer.JSON(t)
	for member, want := range map[string]any{"type": "individual", "first_name": "Zoë", "last_name": "Müller-Čapek", "email": "Zoe@Example.CH",
		"phone": "+41446681800", "date_of_birth": "1990-02-28", "nationality": "CHE", "kyc_status": "not_started", "verification_level": "none",
		"created_at": "2026-01-31T08:15:30.123Z", "updated_at": "2026-01-31T08:15:30.123Z"} {
		if got[member] != want {
			t.Errorf("%s is %v, want %v", member, got[member], want)
		}
	}
	if got["id"] == "mine" || answer.Header.Get("ETag") == "" || !strings.Contains(answer.Body, `"metadata":{"a":null,"b":[1]}`) {
		t.Errorf("got %s with ETag %q", answer.Body, answer.Header.Get("ETag"))
	}
	if _, shown := got["created_by"]; shown {
		t.Error("the record has a member created_by, which the specification does not have")
	}
}

func TestCreate_SetsDefaults(t *testing.T) {
	s := servertest.Start(t)
	smallest := servertest.Body{"first_name": "Ada", "last_name": "Muster", "email": "ada@example.ch"}
	answer := s.Admin().Do("POST", "/v1/customers", smallest).Expect(t, http.StatusCreated)
	for _, want := range []string{`"phone":null`, `"date_of_birth":null`, `"nationality":null`, `"address":null`, `"metadata":{}`} {
		if !strings.Contains(answer.Body, want) {
			t.Errorf("%s lacks %s", answer.Body, want)
		}
	}
}

func TestCreate_ReportsAllWrongFieldsInTheRequestedLanguage(t *testing.T) {
	s := servertest.Start(t)
	answer := s.Admin().With("Accept-Language", "de").Do("POST", "/v1/customers", map[string]any{
		"type": "robot", "last_name": strings.Repeat("x", 101), "email": "nobody", "phone": "123", "date_of_birth": "2025-02-29", "nationality": "CH",
		"address": map[string]any{"country": "ZZ", "city": "a\u0000b"}, "metadata": []int{1},
	}).Expect(t, http.StatusBadRequest).JSON(t)
	details := answer["details"].(map[string]any)
	for _, field := range []string{"type", "first_name", "last_name", "email", "phone", "date_of_birth", "nationality", "address.country", "address.city", "metadata"} {
		if text, _ := details[field].(string); text == "" || strings.HasPrefix(text, "invalid.") {
			t.Errorf("details of %s: %q", field, text)
		}
	}
	if answer["code"] != "common.invalid_input" || details["first_name"] != "Dieses Feld ist erforderlich." {
		t.Errorf("got %v", answer)
	}
}

func TestCustomers_RejectADateOfBirthInTheFuture(t *testing.T) {
	s := servertest.Start(t)
	admin, tomorrow := s.Admin(), s.Clock.Now().AddDate(0, 0, 1).Format("2006-01-02")
	made := admin.Do("POST", "/v1/customers", ada()).Expect(t, http.StatusCreated)
	for path, method := range map[string]string{"/v1/customers": "POST", "/v1/customers/" + made.JSON(t)["id"].(string): "PUT"} {
		if got := admin.Do(method, path, ada().With("date_of_birth", tomorrow)); got.Status != 400 || !strings.Contains(got.Body, `"date_of_birth"`) {
			t.Errorf("%s: got %d %s, want 400", method, got.Status, got.Body)
		}
	}
}

func TestCreate_AcceptsABusinessWithoutFirstName(t *testing.T) {
	s := servertest.Start(t)
	s.Admin().Do("POST", "/v1/customers", map[string]any{"type": "business", "last_name": "Muster AG", "email": "info@muster.example"}).Expect(t, http.StatusCreated)
}

func TestCreate_ReplaysTheAnswerForTheSameIdempotencyKey(t *testing.T) {
	s := servertest.Start(t)
	c := s.Admin().With("Idempotency-Key", "one")
	first := c.Do("POST", "/v1/customers", ada()).Expect(t, http.StatusCreated)
	again := c.Do("POST", "/v1/customers", ada()).Expect(t, http.StatusCreated)
	if first.Body != again.Body {
		t.Errorf("got %s and then %s", first.Body, again.Body)
	}
	if total := s.Admin().Do("GET", "/v1/customers", nil).JSON(t)["total"]; total != 1.0 {
		t.Errorf("there are %v customers, want 1", total)
	}
	if answer := c.Do("POST", "/v1/customers", ada().With("phone", "+41446681800")); answer.Status != 422 || answer.JSON(t)["code"] != "common.idempotency_mismatch" {
		t.Errorf("another body: got %d %s", answer.Status, answer.Body)
	}
	other := s.User(access.Advisor).With("Idempotency-Key", "one").Do("POST", "/v1/customers", ada()).Expect(t, http.StatusCreated)
	if other.Body == first.Body {
		t.Error("another caller got the first caller's answer")
	}
}

func TestUpdate_KeepsMissingMembers(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin()
	made := admin.Do("POST", "/v1/customers", ada().With("phone", "+41446681800", "metadata", map[string]any{"a": 1})).Expect(t, http.StatusCreated)
	path := "/v1/customers/" + made.JSON(t)["id"].(string)
	got := admin.Do("PUT", path, map[string]any{"last_name": "Beispiel", "phone": nil, "kyc_status": "verified"}).Expect(t, http.StatusOK)
	for _, want := range []string{`"first_name":"Ada"`, `"last_name":"Beispiel"`, `"phone":null`, `"metadata":{"a":1}`, `"kyc_status":"not_started"`} {
		if !strings.Contains(got.Body, want) {
			t.Errorf("%s lacks %s", got.Body, want)
		}
	}
	if stale := admin.With("If-Match", made.Header.Get("ETag")).Do("PUT", path, ada()); stale.Status != http.StatusPreconditionFailed {
		t.Errorf("a stale If-Match got %d %s, want 412", stale.Status, stale.Body)
	}
	admin.With("If-Match", got.Header.Get("ETag")).Do("PUT", path, ada()).Expect(t, http.StatusOK)
	if bad := admin.Do("PUT", path, map[string]any{"email": nil}); bad.Status != 400 || !strings.Contains(bad.Body, `"email"`) {
		t.Errorf("without e-mail: got %d %s", bad.Status, bad.Body)
	}
}

func TestAccess_OwnersGranteesAndStaff(t *testing.T) {
	s := servertest.Start(t)
	owner, other, advisor := s.User(access.Customer), s.User(access.Customer), s.User(access.Advisor)
	id := newCustomer(owner)
	path := "/v1/customers/" + id
	change := map[string]any{"last_name": "Neu"}
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "the owner reads", As: owner, Method: "GET", Path: path, Status: 200},
		{Name: "the owner updates", As: owner, Method: "PUT", Path: path, Body: change, Status: 200},
		{Name: "the owner may not decide", As: owner, Method: "PATCH", Path: path + "/kyc/status", Body: map[string]any{"kyc_status": "pending"}, Status: 403},
		{Name: "another customer may not read", As: other, Method: "GET", Path: path, Status: 403,
			Contains: []string{`"common.rbac_no_rec_access"`, "No access to the record"}, Excludes: []string{"Muster", "Neu"}},
		{Name: "another customer may not update", As: other, Method: "PUT", Path: path, Body: change, Status: 403},
		{Name: "nor submit documents", As: other, Method: "PUT", Path: path + "/kyc", Body: passport("A1"), Status: 403},
		{Name: "nor read documents", As: other, Method: "GET", Path: path + "/kyc", Status: 403},
		{Name: "an advisor reads", As: advisor, Method: "GET", Path: path, Status: 200},
		{Name: "an advisor updates", As: advisor, Method: "PUT", Path: path, Body: change, Status: 200},
		{Name: "an anonymous caller is unauthorized", Method: "GET", Path: path, Status: 401},
		{Name: "an unknown id is not found", As: other, Method: "GET", Path: "/v1/customers/" + store.NewID(), Status: 404,
			Contains: []string{`"customers.customer_not_found"`}},
		{Name: "a malformed id", As: other, Method: "GET", Path: "/v1/customers/12", Status: 400, Contains: []string{`"id"`}},
	})
	grant := map[string]any{"user_id": other.UserID, "rec_type": "customers", "permissions": []string{"read"}, "rec_id": id}
	granted := s.Admin().Do("POST", "/v1/rbac/grants", grant).Expect(t, http.StatusCreated)
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "a grant allows reading at once", As: other, Method: "GET", Path: path, Status: 200},
		{Name: "and listing", As: other, Method: "GET", Path: "/v1/customers", Status: 200, Contains: []string{id, `"total":1`}},
		{Name: "but not updating", As: other, Method: "PUT", Path: path, Body: change, Status: 403},
	})
	s.Admin().Do("DELETE", "/v1/rbac/grants/"+granted.JSON(t)["id"].(string), nil).Expect(t, http.StatusOK)
	other.Do("GET", path, nil).Expect(t, http.StatusForbidden)
}

func TestList_FiltersSortsAndCountsVisibleCustomers(t *testing.T) {
	s := servertest.Start(t)
	owner := s.User(access.Customer)
	for i, name := range []string{"Ängst", "ANGST", "Zbinden"} {
		s.Clock.Advance(1)
		owner.Do("POST", "/v1/customers", ada().With("last_name", name, "email", fmt.Sprintf("a%d@example.ch", i))).Expect(t, http.StatusCreated)
	}
	newCustomer(s.Admin())
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "only own customers", As: owner, Method: "GET", Path: "/v1/customers", Status: 200, Contains: []string{`"total":3,"total_unfiltered":3,"has_more":false`}},
		{Name: "all customers for staff", As: s.Admin(), Method: "GET", Path: "/v1/customers?limit=3", Status: 200, Contains: []string{`"total":4,"total_unfiltered":4,"has_more":true`}},
		{Name: "ignoring case", As: owner, Method: "GET", Path: "/v1/customers?search.last_name=%C3%A4NGST", Status: 200,
			Contains: []string{`"total":1,"total_unfiltered":3`, "Ängst"}},
		{Name: "an unknown filter", As: owner, Method: "GET", Path: "/v1/customers?search.secret=1", Status: 500, Contains: []string{`"query_m.invalid_search_field"`}},
		{Name: "an unknown sort field", As: owner, Method: "GET", Path: "/v1/customers?sort=secret", Status: 400, Contains: []string{`"query_m.invalid_sort_field"`}},
		{Name: "an unknown sort field without results", As: owner, Method: "GET", Path: "/v1/customers?sort=secret&search.last_name=none", Status: 200,
			Contains: []string{`"data":[]`}},
		{Name: "in groups", As: owner, Method: "GET", Path: "/v1/customers?stack=kyc_status", Status: 200,
			Contains: []string{`"keys":["not_started"]`, `"group_totals":{"not_started":3}`}},
	})
}
