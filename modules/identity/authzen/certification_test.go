package authzen_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"kontor/server/servertest"
)

// row is one request of the certification scenario of the OpenID AuthZEN working group
// (openid/authzen: certification/authorization-api-1_0-scenario.md), with what its text expects.
type row struct {
	section string // of the scenario
	path    string // below /access/v1/
	body    string
	status  int      // 0: 200
	decides string   // decisions in their order: + permits, - denies, ? either
	finds   []string // ids or names that must be among the results
	empty   bool     // no results
}

const (
	alice  = `"subject": {"type": "user", "id": "alice"}`
	bob    = `"subject": {"type": "user", "id": "bob"}`
	read   = `"action": {"name": "read"}`
	write  = `"action": {"name": "write"}`
	first  = `"resource": {"type": "record", "id": "record-1"}`
	second = `"resource": {"type": "record", "id": "record-2"}`
	people = `"subject": {"type": "user"}`
	any1   = `"resource": {"type": "record"}`
	at     = `"context": {"time": "2025-06-27T18:03-07:00", "ip": "192.168.1.1"}`
)

func object(members ...string) string { return "{" + strings.Join(members, ", ") + "}" }

// basic are the levels Basic Core and the requirements for all levels (sections 2 and 5).
var basic = []row{
	{section: "c-2-2-1", body: object(alice, read, first), decides: "+"},
	{section: "c-2-2-2", body: object(bob, write, first), decides: "-"},
	{section: "c-2-2-3", body: object(alice, read, first, at), decides: "+"},
	{section: "c-2-2-8", body: `{"subject": {"type": "user", "id": "alice", "properties": {"department": "Sales", "role": "manager"}},
		"action": {"name": "read", "properties": {"method": "GET"}},
		"resource": {"type": "record", "id": "record-1", "properties": {"status": "active", "owner": "bob"}}}`, decides: "+"},
	{section: "c-2-2-9", body: object(alice, read, first, `"foo": "bar"`, `"futureField": {"nested": true}`), decides: "+"},
	{section: "c-1-4 rule 2", body: object(alice, write, first), decides: "+"},
	{section: "c-1-4 rule 3", body: object(bob, read, first), decides: "+"},
	{section: "c-2-4-1 subject", body: object(read, first), status: 400},
	{section: "c-2-4-1 action", body: object(alice, first), status: 400},
	{section: "c-2-4-1 resource", body: object(alice, read), status: 400},
	{section: "c-2-4-2 subject.type", body: object(`"subject": {"id": "alice"}`, read, first), status: 400},
	{section: "c-2-4-2 subject.id", body: object(people, read, first), status: 400},
	{section: "c-2-4-2 action.name", body: object(alice, `"action": {}`, first), status: 400},
	{section: "c-2-4-2 resource.type", body: object(alice, read, `"resource": {"id": "record-1"}`), status: 400},
	{section: "c-2-4-2 resource.id", body: object(alice, read, any1), status: 400},
	{section: "c-2-4-4", body: `{"subject": `, status: 400},
	{section: "c-2-4-5", body: "", status: 400},
	{section: "c-2-4-6 subject", body: object(`"subject": "alice"`, read, first), status: 400},
	{section: "c-2-4-6 action.name", body: object(alice, `"action": {"name": 123}`, first), status: 400},
	{section: "c-2-6", body: object(alice, read, first), decides: "+"},
	{section: "c-2-6 again", body: object(alice, read, first), decides: "+"},
}

// batches is the level Batch Core (section 3).
var batches = []row{
	{section: "c-3-2-1", path: "evaluations", body: object(alice, read, evaluations(object(first), object(second))), decides: "+?"},
	{section: "c-3-2-2", path: "evaluations", body: object(bob, first, evaluations(object(read), object(write))), decides: "+-"},
	{section: "c-3-2-5", path: "evaluations", body: object(evaluations(object(alice, read, first), object(bob, write, first))), decides: "+-"},
	{section: "c-3-2-6", path: "evaluations", body: object(alice, read, at,
		evaluations(object(first), object(second, `"context": {"time": "2025-06-27T19:00-07:00", "source": "batch-override"}`))), decides: "+?"},
	{section: "c-3-2-7 identifiers", path: "evaluations", body: object(alice, write, any1,
		evaluations(`{"resource": {"id": "record-1"}}`, object(second))), decides: "+?"},
	{section: "c-3-4-1", path: "evaluations", body: object(alice, read, evaluations(object(first), `{}`)), decides: "+-"},
	{section: "c-3-4-2", path: "evaluations", body: object(alice, read, first), decides: "+"},
	{section: "c-3-4-3", path: "evaluations", body: object(alice, read, first, evaluations()), decides: "+"},
	{section: "c-2-4-4", path: "evaluations", body: `[`, status: 400},
}

func evaluations(all ...string) string { return `"evaluations": [` + strings.Join(all, ", ") + `]` }

// searches is the level Search Core (section 4).
var searches = []row{
	{section: "c-4-2-1", path: "search/subject", body: object(people, read, first), finds: []string{"alice", "bob"}},
	{section: "c-4-2-2", path: "search/subject", body: object(people, read, first, at), finds: []string{"alice", "bob"}},
	{section: "c-4-3-1", path: "search/resource", body: object(alice, read, any1), finds: []string{"record-1"}},
	{section: "c-4-4-1", path: "search/action", body: object(alice, first), finds: []string{"read", "write"}},
	{section: "c-4-4-2", path: "search/action", body: object(alice, first, at), finds: []string{"read", "write"}},
	{section: "c-4-5-1", path: "search/subject", body: object(people, read, first, `"page": {"limit": 1}`), finds: []string{}},
	{section: "c-4-6-1", path: "search/action", body: object(`"subject": {"type": "user", "id": "nonexistent-user"}`, first), empty: true},
	{section: "c-4-6-2", path: "search/subject", body: object(`"subject": {"type": "spaceship"}`, read, first), empty: true},
	{section: "c-4-6-2 resource", path: "search/resource", body: object(alice, read, `"resource": {"type": "spaceship"}`), empty: true},
	{section: "c-4-7-1 subject", path: "search/subject", body: object(people, first), status: 400},
	{section: "c-4-7-1 resource", path: "search/resource", body: object(read, any1), status: 400},
	{section: "c-4-7-1 action", path: "search/action", body: object(alice), status: 400},
	{section: "c-4-7-2 subject", path: "search/subject", body: object(people, read, any1), status: 400},
	{section: "c-4-7-2 resource", path: "search/resource", body: object(people, read, any1), status: 400},
}

// TestCertification sends every request of the levels Basic Core, Batch Core, Search Core and Discovery. The fixture is loaded by the API.
func TestCertification(t *testing.T) {
	s := servertest.Start(t, atBank)
	loadFixture(t, s)
	pep := decisionClient(t, s)
	for _, r := range slices.Concat(basic, batches, searches) {
		path := r.path
		if path == "" {
			path = "evaluation"
		}
		t.Run(r.section+" "+path, func(t *testing.T) { r.check(t, pep.Do("POST", "/access/v1/"+path, r.body)) })
	}
}

// check compares an answer with what the scenario expects.
func (r row) check(t *testing.T, answer servertest.Response) {
	t.Helper()
	want := r.status
	if want == 0 {
		want = http.StatusOK
	}
	answer.Expect(t, want)
	if media := answer.Header.Get("Content-Type"); !strings.HasPrefix(media, "application/json") {
		t.Errorf("content type %q", media)
	}
	if want != http.StatusOK {
		var message string
		if answer.Into(t, &message); message == "" {
			t.Errorf("no message: %s", answer.Body)
		}
		return
	}
	body := answer.JSON(t)
	if r.decides != "" {
		r.checkDecisions(t, body)
		return
	}
	r.checkResults(t, body)
}

func (r row) checkDecisions(t *testing.T, body map[string]any) {
	t.Helper()
	all := []any{body}
	if several, ok := body["evaluations"].([]any); ok {
		all = several
		if _, also := body["decision"]; also {
			t.Error("a decision beside the evaluations")
		}
	}
	got := ""
	for i, one := range all {
		decision, ok := one.(map[string]any)["decision"].(bool)
		switch {
		case !ok:
			t.Fatalf("no decision in %v", one)
		case i < len(r.decides) && r.decides[i] == '?':
			got += "?"
		case decision:
			got += "+"
		default:
			got += "-"
		}
		if context, sent := one.(map[string]any)["context"]; sent {
			if _, ok := context.(map[string]any); !ok {
				t.Errorf("context %v is no object", context)
			}
		}
	}
	if got != r.decides {
		t.Errorf("decided %s, want %s", got, r.decides)
	}
}

func (r row) checkResults(t *testing.T, body map[string]any) {
	t.Helper()
	results, ok := body["results"].([]any)
	if !ok {
		t.Fatalf("no results: %v", body)
	}
	if _, ok := body["page"].(map[string]any)["next_token"].(string); !ok {
		t.Errorf("no next_token: %v", body["page"])
	}
	found := map[string]bool{}
	for _, one := range results {
		switch member := one.(map[string]any); {
		case r.path == "search/action":
			found[member["name"].(string)] = true
		case r.path == "search/subject" && member["type"] != "user", r.path == "search/resource" && member["type"] != "record":
			t.Errorf("type of %v", member)
		default:
			found[member["id"].(string)] = true
		}
	}
	for _, id := range r.finds {
		if !found[id] {
			t.Errorf("%s was not found: %v", id, results)
		}
	}
	if r.empty && len(results) > 0 {
		t.Errorf("found %v", results)
	}
}

// The rows about headers (sections c-2-4-3 and c-2-5).
func TestCertification_Headers(t *testing.T) {
	s := servertest.Start(t, atBank)
	loadFixture(t, s)
	pep := decisionClient(t, s)
	body := object(alice, read, first)
	for _, media := range []string{"text/plain", "application/xml", "application/x-www-form-urlencoded", ""} {
		pep.With("Content-Type", media).Do("POST", "/access/v1/evaluation", body).Expect(t, http.StatusBadRequest)
	}
	pep.With("Content-Type", "application/json; charset=utf-8").Do("POST", "/access/v1/evaluation", body).Expect(t, http.StatusOK)
	for _, id := range []string{"bfe9eb29-ab87-4ca3-be83-a1d5d8305716", "any text, with (signs) & spaces", strings.Repeat("x", 200)} {
		for _, content := range []string{body, "{"} { // errors have it, too
			if got := pep.With("X-Request-ID", id).Do("POST", "/access/v1/evaluation", content).Header.Get("X-Request-ID"); got != id {
				t.Errorf("X-Request-ID %q came back as %q", id, got)
			}
		}
	}
	if got := pep.Do("POST", "/access/v1/evaluation", body).Header.Get("X-Request-ID"); got == "" {
		t.Error("an answer without X-Request-ID")
	}
}

// The rows about pages (section c-4-5): every result comes once.
func TestCertification_Pages(t *testing.T) {
	s := servertest.Start(t, atBank)
	loadFixture(t, s)
	pep := decisionClient(t, s)
	for path, members := range map[string][]string{
		"search/subject": {people, read, first}, "search/resource": {alice, read, any1}, "search/action": {alice, first},
	} {
		seen, token := map[string]int{}, ""
		for pages := 0; ; pages++ {
			page := `"page": {"limit": 1}`
			if token != "" {
				page = fmt.Sprintf(`"page": {"token": %q}`, token) // with the limit of the page before
			}
			body := pep.Do("POST", "/access/v1/"+path, object(append(slices.Clone(members), page)...)).Expect(t, http.StatusOK).JSON(t)
			results := body["results"].([]any)
			if len(results) > 1 || pages > 20 {
				t.Fatalf("%s: page %d has %v", path, pages, results)
			}
			for _, one := range results {
				seen[fmt.Sprint(one)]++
			}
			next := body["page"].(map[string]any)
			if next["count"] != float64(len(results)) {
				t.Errorf("%s: count %v of %v", path, next["count"], results)
			}
			if token = next["next_token"].(string); token == "" {
				break
			}
		}
		if len(seen) < 2 {
			t.Errorf("%s: found %v", path, seen)
		}
		for one, times := range seen {
			if times != 1 {
				t.Errorf("%s: %s came %d times", path, one, times)
			}
		}
	}
}

// The level Discovery (section 6).
func TestCertification_Discovery(t *testing.T) {
	s := servertest.Start(t, atBank)
	answer := s.Anonymous().Do("GET", "/.well-known/authzen-configuration", nil).Expect(t, http.StatusOK)
	body := answer.JSON(t)
	for member, path := range map[string]string{
		"policy_decision_point": "", "access_evaluation_endpoint": "/access/v1/evaluation", "access_evaluations_endpoint": "/access/v1/evaluations",
		"search_subject_endpoint": "/access/v1/search/subject", "search_resource_endpoint": "/access/v1/search/resource",
		"search_action_endpoint": "/access/v1/search/action",
	} {
		if body[member] != bankURL+path {
			t.Errorf("%s is %v", member, body[member])
		}
	}
	if fmt.Sprint(body["capabilities"]) != "[urn:kontor:authzen:properties-ignored]" {
		t.Errorf("capabilities %v", body["capabilities"])
	}
}
