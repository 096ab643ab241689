package authzen_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
)

// ask evaluates one question.
func ask(t *testing.T, c *servertest.Client, subject, action, recType, id string) servertest.Response {
	t.Helper()
	return c.Do("POST", "/access/v1/evaluation", json{"subject": json{"type": "user", "id": subject}, "action": json{"name": action},
		"resource": json{"type": recType, "id": id}})
}

// decides returns the decision about one question.
func decides(t *testing.T, c *servertest.Client, subject, action, recType, id string) bool {
	t.Helper()
	return ask(t, c, subject, action, recType, id).Expect(t, http.StatusOK).JSON(t)["decision"].(bool)
}

// results returns the ids or names that a search found.
func results(t *testing.T, c *servertest.Client, path string, body json) (found []string) {
	t.Helper()
	for _, one := range c.Do("POST", "/access/v1/search/"+path, body).Expect(t, http.StatusOK).JSON(t)["results"].([]any) {
		member := one.(map[string]any)
		if name, ok := member["name"]; ok {
			found = append(found, name.(string))
		} else {
			found = append(found, member["id"].(string))
		}
	}
	return found
}

func TestEvaluation_AboutOthers(t *testing.T) {
	s := servertest.Start(t, atBank)
	aliceID, _ := loadFixture(t, s)
	self := s.SignIn("alice", servertest.Password)
	for _, id := range []string{"alice", "ALICE", aliceID, strings.ToUpper(aliceID)} {
		if !decides(t, self, id, "write", "record", "record-1") {
			t.Errorf("%s may not ask about themself as %q", "alice", id)
		}
	}
	// Those who exist and those who do not get the same answer.
	known := ask(t, self, "bob", "read", "record", "record-1")
	unknown := ask(t, self, "nobody", "read", "record", "record-1")
	if known.Status != http.StatusForbidden || known.Status != unknown.Status || known.Body != unknown.Body {
		t.Errorf("bob: %d %s; nobody: %d %s", known.Status, known.Body, unknown.Status, unknown.Body)
	}
	for path, body := range map[string]json{
		"search/resource": {"subject": json{"type": "user", "id": "bob"}, "action": json{"name": "read"}, "resource": json{"type": "record"}},
		"search/action":   {"subject": json{"type": "user", "id": "bob"}, "resource": json{"type": "record", "id": "record-1"}},
	} {
		self.Do("POST", "/access/v1/"+path, body).Expect(t, http.StatusForbidden)
	}
	batch := self.Do("POST", "/access/v1/evaluations", object(read, first, evaluations(object(alice), object(bob)))).Expect(t, http.StatusOK).JSON(t)
	second := batch["evaluations"].([]any)[1].(map[string]any)
	if second["decision"] != false || second["context"].(map[string]any)["error"].(map[string]any)["status"] != float64(403) {
		t.Errorf("about bob in a batch: %v", second)
	}
}

// A search for subjects finds only users whom the caller may list.
func TestSearchSubjects_RevealsNobody(t *testing.T) {
	s := servertest.Start(t, atBank)
	aliceID, bobID := loadFixture(t, s)
	search := json{"subject": json{"type": "user"}, "action": json{"name": "read"}, "resource": json{"type": "record", "id": "record-1"}}
	self := s.SignIn("alice", servertest.Password)
	if found := results(t, self, "subject", search); fmt.Sprint(found) != "[alice]" {
		t.Errorf("without the right to ask about others: %v", found)
	}
	grant(t, s, json{"user_id": aliceID, "rec_type": "grants", "permissions": []string{"read_all"}})
	if found := results(t, self, "subject", search); fmt.Sprint(found) != "[alice]" {
		t.Errorf("without the right to list users: %v", found)
	}
	grant(t, s, json{"user_id": aliceID, "rec_type": "users", "rec_id": bobID, "permissions": []string{"read"}})
	if found := results(t, self, "subject", search); len(found) != 2 {
		t.Errorf("with the right to read bob: %v", found)
	}
	// A disabled user has no permission and is not found.
	s.Admin().Do("PATCH", "/v1/users/"+bobID, json{"status": "disabled"}).Expect(t, http.StatusOK)
	if found := results(t, self, "subject", search); len(found) != 1 || decides(t, self, "bob", "read", "record", "record-1") {
		t.Errorf("bob is disabled: %v", found)
	}
}

// A permission on a type as a whole without read_all does not let anybody list its records by a search.
func TestSearchResources_ListsOnlyWhatListsShow(t *testing.T) {
	s := servertest.Start(t, atBank)
	customer := s.Admin().Create("/v1/customers", json{"first_name": "Anna", "last_name": "Keller", "email": "anna@example.ch"})
	clerk := named(t, s, "clerk", access.Customer)
	grant(t, s, json{"user_id": clerk, "rec_type": "customers", "permissions": []string{"read"}})
	search := json{"subject": json{"type": "user", "id": "clerk"}, "action": json{"name": "read"}, "resource": json{"type": "customers"}}
	self := s.SignIn("clerk", servertest.Password)
	if !decides(t, self, "clerk", "read", "customers", customer) {
		t.Error("the clerk may not read a customer by its id")
	}
	if found := results(t, self, "resource", search); len(found) != 0 {
		t.Errorf("the clerk lists %v", found)
	}
	if found := results(t, s.Admin(), "resource", search); fmt.Sprint(found) != fmt.Sprint([]string{customer}) {
		t.Errorf("an administrator finds %v", found)
	}
}

func TestEvaluation_UnknownOnesAreDenied(t *testing.T) {
	s := servertest.Start(t, atBank)
	loadFixture(t, s)
	named(t, s, "advisor", access.Advisor)
	pep := decisionClient(t, s)
	const nobody = "0198f5c0-52a1-7cc2-9f00-2a3b4c5d6e7f"
	for name, q := range map[string][4]string{
		"subject":         {"nobody", "read", "record", "record-1"},
		"id of a subject": {nobody, "read", "record", "record-1"},
		"action":          {"alice", "fly", "record", "record-1"},
		"other action":    {"advisor", "write", "customers", nobody},
		"type":            {"alice", "read", "spaceship", "record-1"},
		"resource":        {"alice", "read", "record", "record-3"},
		"customer":        {"advisor", "read", "customers", nobody},
		"no id":           {"advisor", "read", "customers", "record-1"},
		"long id":         {"alice", "read", "record", strings.Repeat("x", 5000)},
		"SQL":             {"alice", "read", "record", "' OR '1'='1"},
		"case":            {"alice", "READ", "record", "record-1"},
	} {
		if decides(t, pep, q[0], q[1], q[2], q[3]) {
			t.Errorf("unknown %s is permitted", name)
		}
	}
	if !decides(t, pep, "advisor", "create", "customers", "00000000-0000-0000-0000-000000000000") {
		t.Error("the nil id does not stand for the type as a whole")
	}
	if answer := pep.Do("POST", "/access/v1/evaluation", object(`"subject": {"type": "service_account", "id": "alice"}`, read, first)); answer.JSON(t)["decision"] != false {
		t.Error("alice is no service account")
	}
}

func TestAuthZEN_Callers(t *testing.T) {
	s := servertest.Start(t, atBank)
	loadFixture(t, s)
	body := object(alice, read, first)
	answer := s.Anonymous().Do("POST", "/access/v1/evaluation", body).Expect(t, http.StatusUnauthorized)
	if !strings.HasPrefix(answer.Body, `"`) {
		t.Errorf("the error is no message: %s", answer.Body)
	}
	s.Anonymous().With("Authorization", "Bearer nonsense").Do("POST", "/access/v1/evaluation", body).Expect(t, http.StatusUnauthorized)
	// A token of the account that is for something else, and one for a part.
	serviceAccount(t, s, "customers.list").Do("POST", "/access/v1/evaluation", body).Expect(t, http.StatusForbidden)
	part := serviceAccount(t, s, "authzen.evaluation")
	part.Do("POST", "/access/v1/search/subject", object(people, read, first)).Expect(t, http.StatusForbidden)
	part.Do("POST", "/access/v1/evaluation", body).Expect(t, http.StatusForbidden) // about others
	registrant := named(t, s, "registrant", access.Registrant)
	s.SignIn("registrant", servertest.Password).Do("POST", "/access/v1/evaluation", object(`"subject": {"type": "user", "id": "`+registrant+`"}`, read, first)).
		Expect(t, http.StatusForbidden)
}

func TestEvaluations_Bounds(t *testing.T) {
	s := servertest.Start(t, atBank)
	loadFixture(t, s)
	pep := decisionClient(t, s)
	items := func(n int) []string {
		all := make([]string, n)
		for i := range all { // each about another subject and resource
			all[i] = fmt.Sprintf(`{"subject": {"type": "user", "id": "user%d"}, "resource": {"type": "record", "id": "r%d"}}`, i, i)
		}
		return all
	}
	answer := pep.Do("POST", "/access/v1/evaluations", object(read, evaluations(items(1000)...))).Expect(t, http.StatusOK)
	if n := len(answer.JSON(t)["evaluations"].([]any)); n != 1000 {
		t.Errorf("%d decisions", n)
	}
	pep.Do("POST", "/access/v1/evaluations", object(read, evaluations(items(1001)...))).Expect(t, http.StatusBadRequest)
	pep.Do("POST", "/access/v1/evaluation", object(alice, read, first, `"context": {"a": "`+strings.Repeat("x", 2<<20)+`"}`)).Expect(t, http.StatusRequestEntityTooLarge)
	for name, body := range map[string]string{
		"deep":                 object(alice, read, first, `"context": `+strings.Repeat(`{"a":`, 20_000)+"1"+strings.Repeat("}", 20_000)),
		"two subjects":         object(alice, bob, read, first),
		"an array":             `[]`,
		"null":                 `null`,
		"context of text":      object(alice, read, first, `"context": "now"`),
		"properties of text":   object(`"subject": {"type": "user", "id": "alice", "properties": "admin"}`, read, first),
		"an empty id":          object(`"subject": {"type": "user", "id": ""}`, read, first),
		"null as subject":      object(`"subject": null`, read, first),
		"two values":           object(alice, read, first) + object(alice, read, first),
		"text that is no text": object(`"subject": {"type": "user", "id": "\ud800"}`, read, first),
	} {
		if answer := pep.Do("POST", "/access/v1/evaluation", body); answer.Status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, answer.Status, answer.Body)
		}
	}
	for _, page := range []string{`{"limit": -1}`, `{"limit": 1.5}`, `{"limit": "10"}`, `{"token": "nonsense"}`, `{"token": 5}`, `[]`, `{"token": "` + strings.Repeat("x", 5000) + `"}`} {
		pep.Do("POST", "/access/v1/search/subject", object(people, read, first, `"page": `+page)).Expect(t, http.StatusBadRequest)
	}
	pep.Do("POST", "/access/v1/search/subject", object(people, read, first, `"page": {"limit": 0}`)).Expect(t, http.StatusOK)
	pep.Do("POST", "/access/v1/search/subject", object(people, read, first, `"page": {"limit": 1e300}`)).Expect(t, http.StatusOK)
}

func TestEvaluations_Semantics(t *testing.T) {
	s := servertest.Start(t, atBank)
	loadFixture(t, s)
	pep := decisionClient(t, s)
	mixed := evaluations(object(bob, read), object(bob, write), object(alice, write))
	for semantic, want := range map[string]string{
		"": "+-+", "execute_all": "+-+", "deny_on_first_deny": "+-", "permit_on_first_permit": "+",
	} {
		options := fmt.Sprintf(`"options": {"evaluations_semantic": %q, "another_option": 1}`, semantic)
		if semantic == "" {
			options = `"options": {}`
		}
		row{decides: want}.check(t, pep.Do("POST", "/access/v1/evaluations", object(first, mixed, options)))
	}
	pep.Do("POST", "/access/v1/evaluations", object(first, mixed, `"options": {"evaluations_semantic": "guess"}`)).Expect(t, http.StatusBadRequest)
	// A wrong question is denied by itself.
	wrong := evaluations(object(alice), object(`"subject": "alice"`), object(`"action": {"name": 5}`), `7`, object(bob))
	answer := pep.Do("POST", "/access/v1/evaluations", object(write, first, wrong))
	if answer.Status == http.StatusOK {
		row{decides: "+----"}.check(t, answer)
	} else {
		t.Errorf("%d %s", answer.Status, answer.Body)
	}
}

// A permission that has ended is denied for the next question, and found by no search.
func TestEvaluation_EndedGrants(t *testing.T) {
	s := servertest.Start(t, atBank)
	_, bobID := loadFixture(t, s)
	pep := decisionClient(t, s)
	now := s.Clock.Now()
	grant(t, s, json{"user_id": bobID, "rec_type": "record", "rec_id": "record-1", "permissions": []string{"delete"},
		"starts_at": now.Add(time.Minute), "expires_at": now.Add(2 * time.Minute)})
	for _, want := range []bool{false, true, false} {
		if got := decides(t, pep, "bob", "delete", "record", "record-1"); got != want {
			t.Fatalf("at %v: %v", s.Clock.Now(), got)
		}
		found := results(t, pep, "action", json{"subject": json{"type": "user", "id": "bob"}, "resource": json{"type": "record", "id": "record-1"}})
		if (len(found) == 2) != want {
			t.Errorf("at %v: %v", s.Clock.Now(), found)
		}
		s.Clock.Advance(time.Minute)
	}
}
