package customers_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
)

type casePage struct {
	Data []struct {
		CustomerID      string         `json:"customer_id"`
		SuggestedLevel  string         `json:"suggested_level"`
		Country         string         `json:"country"`
		Assignee        string         `json:"assignee"`
		KYCStatus       string         `json:"kyc_status"`
		PendingDecision map[string]any `json:"pending_decision"`
	} `json:"data"`
	Total int `json:"total"`
}

func cases(t *testing.T, as *servertest.Client, query string) casePage {
	t.Helper()
	var page casePage
	as.Do("GET", "/v1/kyc/cases?sort=opened_at"+query, nil).Expect(t, http.StatusOK).Into(t, &page)
	return page
}

// waiting creates a customer with a passport whose verification is pending.
func waiting(t *testing.T, s *servertest.Server, owner *servertest.Client) (id string) {
	t.Helper()
	s.Clock.Advance(time.Second)
	id = owner.Create("/v1/customers", person())
	owner.Do("PUT", "/v1/customers/"+id+"/kyc", passport("P-1")).Expect(t, http.StatusOK)
	return id
}

func TestCases_FollowTheVerification(t *testing.T) {
	s := servertest.Start(t)
	owner, advisor, second := s.User(access.Customer), s.User(access.Advisor), s.User(access.Advisor)
	newCustomer(owner) // not started: no case
	first, later := waiting(t, s, owner), waiting(t, s, owner)
	page := cases(t, advisor, "")
	if page.Total != 2 || page.Data[0].CustomerID != first || page.Data[1].CustomerID != later {
		t.Fatalf("got %+v, want the two, oldest first", page)
	}
	if c := page.Data[0]; c.SuggestedLevel != "basic" || c.Country != "CHE" || c.Assignee != "" {
		t.Errorf("got %+v, want basic, CHE and no assignee", c)
	}
	owner.Do("PUT", "/v1/customers/"+first+"/kyc", documents(document("proof_of_address", "B", "2026-06-30"))).Expect(t, http.StatusOK)
	owner.Do("PUT", "/v1/customers/"+later, map[string]any{"address": map[string]any{"country": "LI"}}).Expect(t, http.StatusOK)
	if got := cases(t, advisor, "&search.suggested_level=standard"); got.Total != 1 || got.Data[0].CustomerID != first {
		t.Errorf("level standard: %+v", got)
	}
	if got := cases(t, advisor, "&search.country=LIE"); got.Total != 1 || got.Data[0].CustomerID != later {
		t.Errorf("country LIE: %+v", got)
	}
	status := "/v1/customers/" + first + "/kyc/status"
	advisor.Do("PATCH", status, decide("in_review")).Expect(t, http.StatusOK)
	proposed(t, "/v1/customers/"+first+"/kyc", advisor)
	if got := cases(t, second, "&search.second_person=true"); got.Total != 1 || got.Data[0].PendingDecision["proposed_by"] != advisor.UserID {
		t.Errorf("waiting for a second person: %+v", got)
	}
	advisor.Do("POST", "/v1/customers/"+first+"/kyc/decisions/"+cases(t, advisor, "&search.proposed_level=enhanced").Data[0].PendingDecision["id"].(string)+"/withdraw", nil).
		Expect(t, http.StatusOK)
	advisor.Do("PATCH", status, decide("action_required")).Expect(t, http.StatusOK)
	if got := cases(t, advisor, ""); got.Total != 1 {
		t.Errorf("a case that waits for the customer is open: %+v", got)
	}
}

func TestCases_AreForReviewers(t *testing.T) {
	s := servertest.Start(t)
	owner := s.User(access.Customer)
	id := waiting(t, s, owner)
	for _, c := range []struct{ method, path string }{{"GET", "/v1/kyc/cases"}, {"POST", "/v1/kyc/cases/take"}, {"POST", "/v1/kyc/cases/give-back"}, {"GET", "/v1/kyc/reasons"}} {
		if got := owner.Do(c.method, c.path, map[string]any{"customer_ids": []string{id}}); got.Status != http.StatusForbidden {
			t.Errorf("%s %s: %d, want 403", c.method, c.path, got.Status)
		}
	}
}

func take(as *servertest.Client, t *testing.T, body servertest.Body) (outcome string) {
	t.Helper()
	var out struct {
		Cases []struct {
			Outcome string `json:"outcome"`
		} `json:"cases"`
	}
	as.Do("POST", "/v1/kyc/cases/take", body).Expect(t, http.StatusOK).Into(t, &out)
	for _, c := range out.Cases {
		outcome += c.Outcome + " "
	}
	return outcome
}

func TestTake_AssignsCasesToOneReviewer(t *testing.T) {
	s := servertest.Start(t)
	owner, anna, beat := s.User(access.Customer), s.User(access.Advisor), s.User(access.Advisor)
	first, second := waiting(t, s, owner), waiting(t, s, owner)
	ids := func(ids ...string) servertest.Body { return servertest.Body{"customer_ids": ids} }
	if got := take(anna, t, ids(first)); got != "taken " {
		t.Errorf("a free case: %s", got)
	}
	if got := take(beat, t, ids(first, second, newCustomer(owner), "0193b000-0000-7000-8000-000000000009")); got != "assigned taken closed closed " {
		t.Errorf("a mixture: %s", got)
	}
	if got := cases(t, anna, "&search.assignee="+anna.UserID); got.Total != 1 || got.Data[0].CustomerID != first || got.Data[0].KYCStatus != "in_review" {
		t.Errorf("Anna's cases: %+v", got)
	}
	if got := take(beat, t, ids(first).With("take_over", true)); got != "taken " {
		t.Errorf("taking over: %s", got)
	}
	anna.Do("POST", "/v1/kyc/cases/give-back", ids(first)).Expect(t, http.StatusOK)
	if got := cases(t, anna, "&search.assignee="+beat.UserID); got.Total != 2 {
		t.Errorf("Anna gave back a case of Beat: %+v", got)
	}
	beat.Do("POST", "/v1/kyc/cases/give-back", ids(first)).Expect(t, http.StatusOK)
	if got := cases(t, anna, "&search.assignee=null"); got.Total != 1 {
		t.Errorf("free cases: %+v", got)
	}
	s.Clock.Advance(25 * time.Hour)
	if err := s.Customers.EndAssignments(t.Context()); err != nil {
		t.Fatal(err)
	}
	anna = s.SignIn(anna.UserID, "a long enough password 42")
	if got := cases(t, anna, "&search.assignee=null"); got.Total != 2 {
		t.Errorf("after a day: %+v, want all free", got)
	}
	for name, list := range map[string][]string{"none": {}, "not ids": {"x"}, "too many": make([]string, 101)} {
		if got := anna.Do("POST", "/v1/kyc/cases/take", servertest.Body{"customer_ids": list}); got.Status != http.StatusBadRequest {
			t.Errorf("%s: %d, want 400", name, got.Status)
		}
	}
}

// Reviewers who take all cases at the same time each get some, and no case has two.
func TestTake_GivesEachCaseToOneOfMany(t *testing.T) {
	s := servertest.Start(t)
	owner := s.User(access.Customer)
	var ids []string
	for range 6 {
		ids = append(ids, waiting(t, s, owner))
	}
	var wait sync.WaitGroup
	var taken atomic.Int64
	for range 4 {
		advisor := s.User(access.Advisor)
		wait.Go(func() {
			got, err := advisor.Try("POST", "/v1/kyc/cases/take", servertest.Body{"customer_ids": ids})
			if err != nil {
				t.Error(err)
			}
			taken.Add(int64(strings.Count(got.Body, `"outcome":"taken"`)))
		})
	}
	wait.Wait()
	if n := taken.Load(); n != int64(len(ids)) {
		t.Errorf("%d outcomes taken, want %d", n, len(ids))
	}
}

func TestReasons_ExistInAllLanguages(t *testing.T) {
	s := servertest.Start(t)
	var out struct {
		Reasons []struct {
			ID     string            `json:"id"`
			Status string            `json:"kyc_status"`
			Texts  map[string]string `json:"texts"`
		} `json:"reasons"`
	}
	s.User(access.Advisor).Do("GET", "/v1/kyc/reasons", nil).Expect(t, http.StatusOK).Into(t, &out)
	for _, r := range out.Reasons {
		seen := map[string]bool{}
		for _, language := range []string{"en", "de", "fr", "it"} {
			text := r.Texts[language]
			if text == "" || text == "kyc.reason."+r.ID || seen[text] {
				t.Errorf("%s in %s: %q", r.ID, language, text)
			}
			seen[text] = true
		}
	}
	if len(out.Reasons) < 10 {
		t.Errorf("%d templates", len(out.Reasons))
	}
}
