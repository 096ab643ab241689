package screening_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store/testenv"
)

// suspect is a customer who is on a list, with a persona and a payer who are, too. They may also read the change feed.
type suspect struct {
	*servertest.Client

	server                   *servertest.Server
	customer, persona, payer string
}

func newSuspect(t testing.TB) suspect {
	t.Helper()
	server := servertest.Start(t)
	s := suspect{Client: server.User(access.Customer), server: server}
	for _, endpoint := range []string{"GET /v1/events", "GET /v1/events/types"} {
		server.Admin().Create("/v1/rbac/grants", object{"user_id": s.UserID, "endpoint": endpoint})
	}
	s.customer = s.Create("/v1/customers", viktor())
	s.persona = s.Create("/v1/personas", object{"first_name": "Hans", "last_name": "Zufall", "date_of_birth": "1970-03-03"})
	s.payer = s.Create("/v1/payers", object{"customer_id": s.customer, "name": "Viktor Beispielow"})
	s.Do("PUT", "/v1/customers/"+s.customer+"/kyc", passport("P-1")).Expect(t, http.StatusOK)
	return s
}

// list loads the list, so that the three records have hits. It returns their ids.
func (s suspect) list(t testing.TB) (ids []string) {
	t.Helper()
	load(t, s.server.Admin(), "Sample", people).Expect(t, http.StatusCreated)
	rescreen(t, s.server)
	for _, h := range hits(t, s.server.User(access.Advisor), "?search.status=open") {
		ids = append(ids, h.ID)
	}
	if len(ids) != 3 {
		t.Fatalf("%d hits, want those of the customer, the persona and the payer", len(ids))
	}
	return ids
}

func passport(number string) object {
	return object{"documents": []object{{"type": "passport", "number": number, "expiry_date": "2030-01-01", "country": "RUS"}}}
}

// fill replaces the parameters of a path by ids of the customer.
func (s suspect) fill(path string) string {
	for before, id := range map[string]string{"/v1/customers/": s.customer, "/v1/personas/": s.persona, "/v1/payers/": s.payer, "/v1/users/": s.UserID} {
		if rest, of := strings.CutPrefix(path, before+"{"); of {
			_, rest, _ = strings.Cut(rest, "}")
			path = before + id + rest
		}
	}
	for strings.Contains(path, "{") { // parts, and records of others
		begin, rest, _ := strings.Cut(path, "{")
		_, rest, _ = strings.Cut(rest, "}")
		path = begin + s.customer + rest
	}
	return path
}

// sees returns all that the customer can read, by the request: the answers to every endpoint that reads, with the headers, and to lists
// with their filters. hit stands for the id of a hit.
func (s suspect) sees(t testing.TB, hit string) map[string]string {
	t.Helper()
	all := map[string]string{}
	note := func(method, path string, body any, headers ...string) {
		answer := s.With(headers...).Do(method, path, body)
		for _, differs := range []string{"Date", "X-Request-Id", "X-Padding"} {
			answer.Header.Del(differs)
		}
		text := fmt.Sprintln(answer.Status, answer.Body)
		for _, name := range slices.Sorted(maps.Keys(answer.Header)) {
			text += fmt.Sprintln(name, answer.Header.Values(name))
		}
		all[strings.ReplaceAll(fmt.Sprint(method, " ", path, " ", body, headers), hit, "HIT")] = strings.ReplaceAll(text, hit, "HIT")
	}
	left := []string{"/metrics", "/healthz", "/readyz", "/v1/notifications/sse", "/v1/events", "/authenticate/oidc", "/authenticate/oidc/callback", "/v1/public-endpoint"}
	for _, row := range s.server.Table() {
		if row.Method == http.MethodGet && !slices.Contains(left, row.Path) {
			note("GET", s.fill(row.Path), nil)
		}
	}
	for _, of := range []string{"/v1/customers", "/v1/personas", "/v1/payers", "/v1/tasks", "/v1/notifications"} {
		for _, query := range []string{"?sort=-updated_at", "?stack=created_at:day", "?distinct=id", "?search.id=" + s.customer} {
			note("GET", of+query, nil)
		}
		note("GET", of, nil, "Accept", "text/csv")
	}
	note("GET", "/v1/search?q=Beispielow", nil)
	note("GET", "/v1/search?q=Zufall", nil)
	note("GET", "/v1/search?q=Sample", nil)
	note("POST", "/v1/screening/check", object{"name": "Viktor Beispielow"})
	note("POST", "/v1/customers/duplicates", viktor())
	for _, path := range []string{hitsPath + "?search.customer_id=" + s.customer, hitsPath + "/" + hit} {
		for _, headers := range [][]string{nil, {"If-None-Match", "*"}, {"If-None-Match", `"v1"`}, {"If-Match", `"v9"`}} {
			note("GET", path, nil, headers...)
			note("HEAD", path, nil, headers...)
		}
	}
	for _, match := range []string{"*", `"v1"`, `"v9"`} {
		note("POST", hitsPath+"/"+hit+"/decide", decision("dismissed"), "If-Match", match)
	}
	note("POST", "/v1/rbac/check", object{"checks": []object{{"rec_type": "screening_hits", "permission": "read", "rec_id": hit}, {"rec_type": "customers", "permission": "read", "rec_id": s.customer}}})
	me := object{"type": "user", "id": s.UserID}
	for _, resource := range []object{{"type": "screening_hits", "id": hit}, {"type": "customers", "id": s.customer}, {"type": "endpoint", "id": "GET /v1/screening/hits/{id}"}} {
		note("POST", "/access/v1/evaluation", object{"subject": me, "action": object{"name": "read"}, "resource": resource})
		note("POST", "/access/v1/search/action", object{"subject": me, "resource": resource})
		note("POST", "/access/v1/search/subject", object{"subject": object{"type": "user"}, "action": object{"name": "read"}, "resource": resource})
		note("POST", "/access/v1/search/resource", object{"subject": me, "action": object{"name": "read"}, "resource": object{"type": resource["type"]}})
	}
	return all
}

// Nothing that the customer can read changes when hits appear: no body, no header, no ETag and no total. The id of a hit answers as an
// unknown one does.
func TestTippingOff_NothingThatCustomersReadChanges(t *testing.T) {
	s := newSuspect(t)
	before := s.sees(t, "019a0000-0000-7000-8000-000000000000")
	if len(before) < 100 {
		t.Fatalf("only %d requests", len(before))
	}
	found := s.list(t)
	for _, hit := range found {
		after := s.sees(t, hit)
		for request, was := range before {
			if is := after[request]; is != was {
				t.Errorf("%s:\nwithout a hit %s\nwith a hit %s", request, was, is)
			}
		}
	}
}

// Nor does anything that the customer does show a hit.
func TestTippingOff_ChangesOfCustomersAnswerAsEver(t *testing.T) {
	s := newSuspect(t)
	found := s.list(t)
	kyc := "/v1/customers/" + s.customer + "/kyc"
	verified := passport("P-2")
	verified["verified_at"] = "2026-01-31T08:00:00Z"
	for _, r := range []struct {
		method, path string
		body         object
		status       int
	}{
		{"PUT", kyc, passport("P-3"), http.StatusOK},
		{"PUT", kyc, verified, http.StatusOK},
		{"PUT", kyc, object{"verified_at": "2026-01-31T08:00:00Z"}, http.StatusOK},
		{"PATCH", kyc + "/status", object{"kyc_status": "verified"}, http.StatusForbidden},
		{"PUT", "/v1/customers/" + s.customer, object{"last_name": "Beispielov"}, http.StatusOK},
		{"PUT", "/v1/customers/" + s.customer, object{"last_name": "Muster"}, http.StatusOK},
		{"PUT", "/v1/customers/" + s.customer, object{"last_name": "Beispielow"}, http.StatusOK},
		{"DELETE", "/v1/payers/" + s.payer, nil, http.StatusOK},
	} {
		rescreen(t, s.server)
		answer := s.Do(r.method, r.path, r.body).Expect(t, r.status)
		text := strings.ToLower(answer.Body + fmt.Sprint(answer.Header))
		for _, word := range append([]string{"screening", "sanction", `"verified"`, "409"}, found...) {
			if strings.Contains(text, word) && !(word == `"verified"` && r.status != http.StatusOK) {
				t.Errorf("%s %s: %q in %s", r.method, r.path, word, text)
			}
		}
	}
	if got := s.Do("GET", kyc, nil).Expect(t, http.StatusOK).JSON(t); len(got["screening_hits"].([]any)) != 0 || got["kyc_status"] == "verified" {
		t.Errorf("got %v", got)
	}
}

// The change feed and its stream pass over hits. A reviewer gets them at the same places.
func TestTippingOff_EventsAreForReviewers(t *testing.T) {
	s := newSuspect(t)
	advisor := s.server.User(access.Advisor)
	start := advisor.Do("GET", "/v1/events?after=latest", nil).Expect(t, http.StatusOK).JSON(t)["next"].(string)
	stream := follow(t, s.server.Address, s.Token)
	s.list(t)
	s.Do("PUT", "/v1/payers/"+s.payer, object{"name": "Anna Muster"}).Expect(t, http.StatusOK)
	for of, want := range map[*servertest.Client]bool{s.Client: false, advisor: true} {
		for _, query := range []string{"limit=1000", "limit=100&include=record", "limit=1000&types=screening_hits.*", "limit=1000&types=screening_hits.created"} {
			body := of.Do("GET", "/v1/events?after="+start+"&"+query, nil).Expect(t, http.StatusOK).Body
			if strings.Contains(body, "screening_hits.created") != want {
				t.Errorf("%s of %s: %s", query, of.UserID, body)
			}
		}
	}
	for line := ""; !strings.Contains(line, s.payer); {
		if line = stream(); line == "" || strings.Contains(line, "screening") {
			t.Fatalf("got the line %q before the event of the payer", line)
		}
	}
}

// follow opens the stream of the change feed. next returns its next line that is not empty, and an empty text at the end. The patience
// of the tests ends the stream, too, as heartbeats come as long as it is open.
func follow(t testing.TB, address, token string) (next func() string) {
	t.Helper()
	ctx, end := context.WithTimeout(t.Context(), testenv.Limit())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/v1/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		end()
		_ = response.Body.Close()
	})
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the stream answers %d", response.StatusCode)
	}
	lines := bufio.NewScanner(response.Body)
	return func() string {
		for lines.Scan() {
			if lines.Text() != "" {
				return lines.Text()
			}
		}
		return ""
	}
}

// A reviewer who is the customer gets the answers of a customer without hits. All others read the hit.
func TestTippingOff_ReviewersDoNotReadTheirOwnHits(t *testing.T) {
	s := servertest.Start(t)
	self, advisor := s.Admin(), s.User(access.Advisor)
	body := viktor()
	body["email"] = servertest.AdminEmail
	customer := advisor.Create("/v1/customers", body)
	kyc := inReview(t, advisor, customer)
	verify, reads := object{"kyc_status": "verified"}, []string{kyc, hitsPath, hitsPath + "?search.customer_id=" + customer, "/v1/kyc/cases", "/v1/events?types=screening_hits.*"}
	load(t, self, "Sample", sample+line("X1", "Person", "Somebody Else", "", "")).Expect(t, http.StatusCreated)
	rescreen(t, s)
	seen := func() (all []string) {
		for _, path := range reads {
			answer := self.Do("GET", path, nil).Expect(t, http.StatusOK)
			body, _, _ := strings.Cut(answer.Body, `"next":`) // numbers of events have no gaps
			all = append(all, body, answer.Header.Get("ETag"))
		}
		return all
	}
	before := seen()
	load(t, self, "Sample", people).Expect(t, http.StatusCreated)
	rescreen(t, s)
	hit := open(t, advisor)
	if after := seen(); !slices.Equal(before, after) {
		t.Errorf("without a hit %q\nwith a hit %q", before, after)
	}
	self.Do("GET", hitsPath+"/"+hit.ID, nil).ExpectError(t, http.StatusNotFound, "screening.hit_not_found")
	self.Do("POST", hitsPath+"/"+hit.ID+"/decide", decision("dismissed")).ExpectError(t, http.StatusNotFound, "screening.hit_not_found")
	self.Do("PATCH", kyc+"/status", verify).ExpectError(t, http.StatusForbidden, "customers.self_verification")
	self.Do("PUT", kyc, object{"verified_at": "2026-01-31T08:00:00Z"}).ExpectError(t, http.StatusForbidden, "customers.self_verification")
	advisor.Do("PATCH", kyc+"/status", verify).ExpectError(t, http.StatusConflict, "customers.screening_open")
}

// An erasure deletes hits with their history, and the comparison writes no new ones. The end of each test compares the records with the
// trail, as kontor check does.
func TestErasure_DeletesHits(t *testing.T) {
	s := newSuspect(t)
	found := s.list(t)
	admin := s.server.Admin()
	for _, path := range []string{"/v1/customers/" + s.customer, "/v1/personas/" + s.persona} {
		admin.Erase(path)
	}
	load(t, admin, "Sample", people+line("P3", "Person", "Viktor Beispielow", "", "")).Expect(t, http.StatusCreated)
	rescreen(t, s.server)
	if left := hits(t, admin, ""); len(left) != 0 {
		t.Errorf("hits are left: %+v", left)
	}
	for _, id := range found {
		admin.Do("GET", hitsPath+"/"+id, nil).ExpectError(t, http.StatusNotFound, "screening.hit_not_found")
	}
	for _, table := range []string{"screening_hits", "screening_hit_changes"} {
		var n int
		if err := s.server.DB.QueryRow(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&n); err != nil || n != 0 {
			t.Errorf("%s has %d rows, %v", table, n, err)
		}
	}
}
