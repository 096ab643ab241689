package payers_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/client"
	"kontor/server/client/clienttest"
	"kontor/server/servertest"
	"kontor/store"
)

// newCustomer creates a customer and returns its id.
func newCustomer(c *servertest.Client) string {
	return c.Create("/v1/customers", map[string]any{"first_name": "Ada", "last_name": "Muster", "email": "ada@example.ch"})
}

// payer returns the smallest valid payer, with further members in pairs.
func payer(customerID string, pairs ...any) servertest.Body {
	return servertest.Body{"customer_id": customerID, "name": "Hans Zahler"}.With(pairs...)
}

// newPayer creates a customer and a payer of it, and returns the payer's id.
func newPayer(c *servertest.Client, pairs ...any) string {
	return c.Create("/v1/payers", payer(newCustomer(c), pairs...))
}

func TestCreate_ReturnsTheWholeRecord(t *testing.T) {
	s := servertest.Start(t)
	owner := s.User(access.Customer)
	customer := newCustomer(owner)
	answer := owner.Do("POST", "/v1/payers", payer(strings.ToUpper(customer), "email", "Hans@Example.CH", "company", " Müller AG ", "country", "CHE",
		"metadata", map[string]any{"a": 1}, "active", false, "id", "mine", "created_by", "me")).Expect(t, http.StatusCreated)
	got := answer.JSON(t)
	for member, want := range map[string]any{"customer_id": customer, "email": "Hans@Example.CH", "name": "Hans Zahler", "company": "Müller AG",
		"country": "CHE", "active": true, "created_by": owner.UserID, "modified_by": owner.UserID, "created_at": "2026-01-31T08:15:30.123Z"} {
		if got[member] != want {
			t.Errorf("%s is %v, want %v", member, got[member], want)
		}
	}
	if got["id"] == "mine" || !strings.Contains(answer.Body, `"metadata":{"a":1}`) {
		t.Errorf("got %s", answer.Body)
	}
	read := owner.Do("GET", "/v1/payers/"+got["id"].(string), nil).Expect(t, http.StatusOK)
	if read.Body != answer.Body || read.Header.Get("ETag") == "" || read.Header.Get("ETag") != answer.Header.Get("ETag") {
		t.Errorf("read %s, created %s", read.Body, answer.Body)
	}
	bare := owner.Do("POST", "/v1/payers", map[string]any{"customer_id": customer, "company": "Bund"}).Expect(t, http.StatusCreated)
	for _, want := range []string{`"email":null`, `"name":null`, `"country":null`, `"metadata":{}`} {
		if !strings.Contains(bare.Body, want) {
			t.Errorf("%s lacks %s", bare.Body, want)
		}
	}
}

func TestCreate_RejectsInvalidPayers(t *testing.T) {
	s := servertest.Start(t)
	owner := s.User(access.Customer)
	customer, foreign := newCustomer(owner), newCustomer(s.Admin())
	long := strings.Repeat("x", 201)
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "all invalid members at once", As: owner.With("Accept-Language", "de"), Method: "POST", Path: "/v1/payers", Status: 400,
			Body:     map[string]any{"email": "nobody", "name": long, "company": "a\nb", "country": "che", "metadata": []int{}},
			Contains: []string{`"customer_id":"Dieses Feld ist erforderlich."`, `"email"`, `"name"`, `"company"`, `"country"`, `"metadata"`}},
		{Name: "a blank name", As: owner, Method: "POST", Path: "/v1/payers", Body: map[string]any{"customer_id": customer, "name": " "}, Status: 400,
			Contains: []string{`"details":{"name":"Give a name or a company."}`}},
		{Name: "a malformed id", As: owner, Method: "POST", Path: "/v1/payers", Body: payer("12"), Status: 400, Contains: []string{`"customer_id"`}},
		{Name: "an unknown customer", As: owner, Method: "POST", Path: "/v1/payers", Body: payer(store.NewID()), Status: 404,
			Contains: []string{`"customers.customer_not_found"`}},
		{Name: "another user's customer", As: owner, Method: "POST", Path: "/v1/payers", Body: payer(foreign), Status: 403},
		{Name: "an advisor may", As: s.User(access.Advisor), Method: "POST", Path: "/v1/payers", Body: payer(foreign), Status: 201},
		{Name: "a registrant may not", As: s.User(access.Registrant), Method: "POST", Path: "/v1/payers", Body: payer(foreign), Status: 403},
	})
	grant := map[string]any{"user_id": owner.UserID, "rec_type": "customers", "permissions": []string{"read"}, "rec_id": foreign}
	s.Admin().Do("POST", "/v1/rbac/grants", grant).Expect(t, http.StatusCreated)
	owner.Do("POST", "/v1/payers", payer(foreign)).Expect(t, http.StatusForbidden) // reading the customer is not enough
}

func TestCreate_ReplaysTheAnswerForTheSameIdempotencyKey(t *testing.T) {
	s, ctx := servertest.Start(t), t.Context()
	kontor, key := clienttest.Admin(t, s), client.IdempotencyKey("one")
	in := client.PayerCreateInput{CustomerID: newCustomer(s.Admin()), Name: "Hans Zahler"}
	var meta client.Meta
	first, err := kontor.Payers.Create(ctx, in, key, client.Into(&meta))
	if err != nil || meta.Replayed {
		t.Fatalf("got %+v, %v", meta, err)
	}
	again, err := kontor.Payers.Create(ctx, in, key, client.Into(&meta))
	if err != nil || !meta.Replayed || again.ID != first.ID || again.ETag != first.ETag {
		t.Errorf("got %+v, %+v, %v", again, meta, err)
	}
	if page, err := kontor.Payers.List(ctx, client.PayersListParams{}); err != nil || page.Total != 1 {
		t.Errorf("there are %+v, %v", page, err)
	}
	in.Name = "Vreni Zahler"
	if _, err := kontor.Payers.Create(ctx, in, key); !errors.Is(err, client.ErrCommonIdempotencyMismatch) {
		t.Errorf("another payer with the same key: got %v", err)
	}
}

func TestUpdate_KeepsMissingMembers(t *testing.T) {
	s := servertest.Start(t)
	owner, advisor := s.User(access.Customer), s.User(access.Advisor)
	made := owner.Do("POST", "/v1/payers", payer(newCustomer(owner), "company", "Alt AG", "country", "CHE", "email", "a@example.ch", "metadata", map[string]any{"a": 1}))
	record := made.JSON(t)
	path := "/v1/payers/" + record["id"].(string)
	s.Clock.Advance(1e9)
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "one member", As: advisor, Method: "PUT", Path: path, Body: map[string]any{"company": "Neu AG"}, Status: 200,
			Contains: []string{`"company":"Neu AG"`, `"name":"Hans Zahler"`, `"country":"CHE"`, `"email":"a@example.ch"`, `"metadata":{"a":1}`,
				`"created_by":"` + owner.UserID, `"modified_by":"` + advisor.UserID, `"modified_at":"2026-01-31T08:15:31.123Z"`}},
		{Name: "read-only members are ignored", As: owner, Method: "PUT", Path: path, Status: 200,
			Body:     map[string]any{"id": store.NewID(), "customer_id": store.NewID(), "active": false, "created_by": "x", "metadata": map[string]any{"b": 2}},
			Contains: []string{record["id"].(string), record["customer_id"].(string), `"active":true`, `"metadata":{"b":2}`}},
		{Name: "null removes", As: owner, Method: "PUT", Path: path, Body: map[string]any{"name": nil, "country": ""}, Status: 200, Contains: []string{`"name":null`, `"country":null`}},
		{Name: "but not both name and company", As: owner, Method: "PUT", Path: path, Body: map[string]any{"company": nil}, Status: 400, Contains: []string{`"name"`}},
		{Name: "invalid types", As: owner, Method: "PUT", Path: path, Body: map[string]any{"country": "CH", "email": "x", "name": 5}, Status: 400, Contains: []string{`"name"`}},
		{Name: "invalid values", As: owner, Method: "PUT", Path: path, Body: map[string]any{"country": "CH", "email": "x"}, Status: 400, Contains: []string{`"country"`, `"email"`}},
		{Name: "a stale ETag", As: owner.With("If-Match", made.Header.Get("ETag")), Method: "PUT", Path: path, Body: map[string]any{"name": "X"}, Status: 412},
		{Name: "the new company is found", As: owner, Method: "GET", Path: "/v1/payers?company=neu", Status: 200, Contains: []string{`"total":1`}},
		{Name: "the old company is not", As: owner, Method: "GET", Path: "/v1/payers?company=alt", Status: 200, Contains: []string{`{"payers":[],"total":0,"has_more":false}`}},
	})
}

func TestAccess_OwnersGranteesAndStaff(t *testing.T) {
	s := servertest.Start(t)
	owner, other := s.User(access.Customer), s.User(access.Customer)
	id := newPayer(owner, "company", "Geheim AG")
	path := "/v1/payers/" + id
	calls := []struct {
		method string
		body   any
	}{{"GET", nil}, {"PUT", map[string]any{"name": "Neu"}}, {"DELETE", nil}}
	for _, c := range []struct {
		name   string
		as     *servertest.Client
		status []int
	}{
		{"anonymous", s.Anonymous(), []int{401, 401, 401}},
		{"api key", s.Keyed(), []int{401, 401, 401}},
		{"registrant", s.User(access.Registrant), []int{403, 403, 403}},
		{"other", other, []int{403, 403, 403}},
		{"advisor", s.User(access.Advisor), []int{200, 200, 403}},
		{"owner", owner, []int{200, 200, 200}},
		{"administrator", s.Admin(), []int{200, 200, 200}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i, call := range calls {
				answer := c.as.Do(call.method, path, call.body)
				if answer.Status != c.status[i] || answer.Status >= 400 && strings.Contains(answer.Body, "Geheim") {
					t.Errorf("%s: got %d %s, want %d", call.method, answer.Status, answer.Body, c.status[i])
				}
			}
		})
	}
	for _, call := range calls {
		other.Do(call.method, "/v1/payers/12", call.body).Expect(t, http.StatusBadRequest)
		if answer := other.Do(call.method, "/v1/payers/"+store.NewID(), call.body); answer.Status != 404 || answer.JSON(t)["code"] != "payers.payer_not_found" {
			t.Errorf("%s of nothing: got %d %s", call.method, answer.Status, answer.Body)
		}
	}
	grant := map[string]any{"user_id": other.UserID, "rec_type": "payers", "permissions": []string{"read"}, "rec_id": id}
	s.Admin().Do("POST", "/v1/rbac/grants", grant).Expect(t, http.StatusCreated)
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "a grant allows reading the payer, which is inactive by now", As: other, Method: "GET", Path: path, Status: 200, Contains: []string{`"active":false`}},
		{Name: "and listing", As: other, Method: "GET", Path: "/v1/payers", Status: 200, Contains: []string{id, `"total":1`}},
		{Name: "but not updating", As: other, Method: "PUT", Path: path, Body: map[string]any{"name": "X"}, Status: 403},
		{Name: "the grantee's check agrees", As: other, Method: "POST", Path: "/v1/rbac/check", Status: 200, Contains: []string{`"allowed":true,"source":"user"`},
			Body: map[string]any{"checks": []any{map[string]any{"rec_type": "payers", "permission": "read", "rec_id": id}}}},
		{Name: "and so does the owner's", As: owner, Method: "POST", Path: "/v1/rbac/check", Status: 200, Contains: []string{`"allowed":true,"source":"owner"`},
			Body: map[string]any{"checks": []any{map[string]any{"rec_type": "payers", "permission": "delete", "rec_id": id}}}},
	})
}

func TestUpdate_ReactivatesAnArchivedPayer(t *testing.T) {
	s := servertest.Start(t)
	owner, advisor := s.User(access.Customer), s.User(access.Advisor)
	path := "/v1/payers/" + newPayer(owner)
	active := func(value any) map[string]any { return map[string]any{"active": value} }
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "archive", As: owner, Method: "DELETE", Path: path, Status: 200},
		{Name: "another change leaves it archived", As: owner, Method: "PUT", Path: path, Body: map[string]any{"name": "Vreni Zahler"}, Status: 200,
			Contains: []string{`"active":false`}},
		{Name: "null leaves it archived", As: owner, Method: "PUT", Path: path, Body: active(nil), Status: 200, Contains: []string{`"active":false`}},
		{Name: "another customer may not reactivate it", As: s.User(access.Customer), Method: "PUT", Path: path, Body: active(true), Status: 403},
		{Name: "a wrong type is rejected", As: owner, Method: "PUT", Path: path, Body: active("yes"), Status: 400, Contains: []string{`"active"`}},
		{Name: "an advisor reactivates it", As: advisor, Method: "PUT", Path: path, Body: active(true), Status: 200,
			Contains: []string{`"active":true`, `"name":"Vreni Zahler"`, `"modified_by":"` + advisor.UserID}},
		{Name: "it is listed as active", As: owner, Method: "GET", Path: "/v1/payers?active=true", Status: 200, Contains: []string{`"total":1`}},
		{Name: "false does not archive", As: advisor, Method: "PUT", Path: path, Body: active(false), Status: 200, Contains: []string{`"active":true`}},
	})
}

func TestArchive_ConfirmsInTheRequestedLanguage(t *testing.T) {
	s := servertest.Start(t)
	owner := s.User(access.Customer)
	path := "/v1/payers/" + newPayer(owner)
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "confirmed", As: owner.With("Accept-Language", "it"), Method: "DELETE", Path: path, Status: 200, Contains: []string{`{"message":"Il pagatore è stato disattivato."}`}},
		{Name: "archiving again changes nothing", As: owner, Method: "DELETE", Path: path, Status: 200},
		{Name: "a stale ETag is rejected", As: owner.With("If-Match", `"v1"`), Method: "DELETE", Path: path, Status: 412},
	})
	trail := s.Admin().Do("GET", "/v1/audit?search.action=payers.create,payers.archive", nil)
	if total := trail.JSON(t)["total"]; total != 2.0 {
		t.Errorf("the audit trail has %v entries, want 2: %s", total, trail.Body)
	}
}

func TestList_FiltersVisiblePayers(t *testing.T) {
	s := servertest.Start(t)
	owner := s.User(access.Customer)
	customer := newCustomer(owner)
	for i, company := range []string{"Müller & Söhne AG", "MÜLLER 100%", "Strasse_1 GmbH", `Back\slash`} {
		s.Clock.Advance(1e6)
		owner.Do("POST", "/v1/payers", payer(customer, "company", company, "country", []string{"CHE", "DEU", "CHE", "ITA"}[i])).Expect(t, http.StatusCreated)
	}
	newPayer(s.Admin())
	find := func(query string) string { return "/v1/payers?" + query }
	company := func(part string) string { return find("company=" + url.QueryEscape(part)) }
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "only own payers", As: owner, Method: "GET", Path: find(""), Status: 200, Contains: []string{`"total":4,"has_more":false`, `{"payers":[{`}, Excludes: []string{"total_unfiltered"}},
		{Name: "all payers for staff", As: s.User(access.Advisor), Method: "GET", Path: find("limit=2"), Status: 200, Contains: []string{`"total":5,"has_more":true`}},
		{Name: "newest first", As: owner, Method: "GET", Path: find("limit=1"), Status: 200, Contains: []string{`Back\\slash`}},
		{Name: "the last page", As: owner, Method: "GET", Path: find("limit=1&offset=3"), Status: 200, Contains: []string{"Söhne", `"total":4,"has_more":false`}},
		{Name: "past the last page", As: owner, Method: "GET", Path: find("offset=4"), Status: 200, Contains: []string{`{"payers":[],"total":4,"has_more":false}`}},
		{Name: "a part of the name, ignoring case", As: owner, Method: "GET", Path: company("mÜLLer"), Status: 200, Contains: []string{`"total":2,`}},
		{Name: "a percent sign is no wildcard", As: owner, Method: "GET", Path: company("%"), Status: 200, Contains: []string{`"total":1,`, "100%"}},
		{Name: "nor is an underscore", As: owner, Method: "GET", Path: company("_"), Status: 200, Contains: []string{`"total":1,`, "Strasse_1"}},
		{Name: "a backslash is no escape", As: owner, Method: "GET", Path: company(`\`), Status: 200, Contains: []string{`"total":1,`}},
		{Name: "a sharp s matches ss", As: owner, Method: "GET", Path: company("straße"), Status: 200, Contains: []string{`"total":1,`}},
		{Name: "no company filter", As: owner, Method: "GET", Path: company(""), Status: 200, Contains: []string{`"total":4,`}},
		{Name: "a quote does not end the text", As: owner, Method: "GET", Path: company(`' OR 1=1 --`), Status: 200, Contains: []string{`"total":0,`}},
		{Name: "a country", As: owner, Method: "GET", Path: find("country=CHE"), Status: 200, Contains: []string{`"total":2,`}},
		{Name: "a country and a company", As: owner, Method: "GET", Path: find("country=CHE&company=ag"), Status: 200, Contains: []string{`"total":1,`}},
		{Name: "an unassigned country", As: owner, Method: "GET", Path: find("country=XXX"), Status: 200, Contains: []string{`"total":0,`}},
		{Name: "active payers", As: owner, Method: "GET", Path: find("active=true"), Status: 200, Contains: []string{`"total":4,`}},
		{Name: "inactive payers", As: owner, Method: "GET", Path: find("active=false"), Status: 200, Contains: []string{`{"payers":[],"total":0,"has_more":false}`}},
	})
}

func TestList_HasTwentyPayersOnAPageByDefault(t *testing.T) {
	s := servertest.Start(t)
	owner := s.User(access.Customer)
	customer := newCustomer(owner)
	for i := range 21 {
		owner.Do("POST", "/v1/payers", payer(customer, "name", fmt.Sprint("P", i))).Expect(t, http.StatusCreated)
	}
	page := owner.Do("GET", "/v1/payers", nil).JSON(t)
	if shown := len(page["payers"].([]any)); shown != 20 || page["total"] != 21.0 || page["has_more"] != true {
		t.Errorf("%d of %v, more %v; want 20 of 21 and more", shown, page["total"], page["has_more"])
	}
}

func TestList_RejectsInvalidParameters(t *testing.T) {
	s := servertest.Start(t)
	owner := s.User(access.Customer)
	for query, field := range map[string]string{
		"limit=0": "limit", "limit=101": "limit", "limit=-1": "limit", "limit=ten": "limit", "limit=": "limit", "limit=1.5": "limit",
		"limit=99999999999999999999": "limit", "offset=-1": "offset", "offset=x": "offset", "country=che": "country", "country=CH": "country",
		"country=CHEE": "country", "country=": "country", "country=C%C3%9CE": "country", "country=CH%0A": "country", "active=yes": "active", "active=": "active",
		"company=%00": "company", "company=" + strings.Repeat("x", 201): "company",
	} {
		answer := owner.Do("GET", "/v1/payers?"+query, nil)
		details, _ := answer.JSON(t)["details"].(map[string]any)
		if answer.Status != 400 || len(details) != 1 || details[field] == nil || answer.JSON(t)["code"] != "common.invalid_input" {
			t.Errorf("%s: got %d %s, want 400 naming %s", query, answer.Status, answer.Body, field)
		}
	}
	all := owner.Do("GET", "/v1/payers?limit=0&offset=-1&country=x&active=maybe", nil).Expect(t, 400)
	if details := all.JSON(t)["details"].(map[string]any); len(details) != 4 {
		t.Errorf("not all invalid parameters are named: %v", details)
	}
}

func TestList_OfOneCustomer(t *testing.T) {
	s := servertest.Start(t)
	owner, other := s.User(access.Customer), s.User(access.Customer)
	first, second, foreign := newCustomer(owner), newCustomer(owner), newCustomer(other)
	var own []string
	for i := range 3 {
		own = append(own, owner.Create("/v1/payers", payer(first, "company", fmt.Sprint("Müller ", i))))
	}
	owner.Create("/v1/payers", payer(second))
	hidden := other.Create("/v1/payers", payer(foreign))
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "all of a customer", As: owner, Method: "GET", Path: "/v1/payers?customer_id=" + strings.ToUpper(first), Status: 200, Contains: []string{`"total":3`, own[0], own[2]}},
		{Name: "with another filter", As: owner, Method: "GET", Path: "/v1/payers?company=ller%201&customer_id=" + first, Status: 200, Contains: []string{`"total":1`, own[1]}},
		{Name: "a page of them", As: owner, Method: "GET", Path: "/v1/payers?limit=2&customer_id=" + first, Status: 200, Contains: []string{`"total":3`, `"has_more":true`}, Excludes: []string{own[0]}},
		{Name: "of a foreign customer", As: owner, Method: "GET", Path: "/v1/payers?customer_id=" + foreign, Status: 200, Contains: []string{`"total":0`}, Excludes: []string{hidden}},
		{Name: "of a foreign customer, as staff", As: s.User(access.Advisor), Method: "GET", Path: "/v1/payers?customer_id=" + foreign, Status: 200, Contains: []string{hidden}},
		{Name: "of no customer", As: owner, Method: "GET", Path: "/v1/payers?customer_id=" + store.NewID(), Status: 200, Contains: []string{`"payers":[]`}},
		{Name: "not an id", As: owner, Method: "GET", Path: "/v1/payers?customer_id=x", Status: 400, Contains: []string{`"customer_id"`}},
	})
}
