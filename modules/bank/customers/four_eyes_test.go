package customers_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
)

func fourEyes(mode string) servertest.Option {
	return func(s *settings.Settings) { s.KYC.FourEyes = mode }
}

// inReview creates a customer with a passport and a proof of address whose verification is in review.
func inReview(t *testing.T, owner, reviewer *servertest.Client) (path string) {
	t.Helper()
	path = "/v1/customers/" + owner.Create("/v1/customers", person()) + "/kyc"
	owner.Do("PUT", path, documents(document("passport", "P-1", "2030-01-01"), document("proof_of_address", "B-1", "2026-06-30"))).Expect(t, http.StatusOK)
	reviewer.Do("PATCH", path+"/status", decide("in_review")).Expect(t, http.StatusOK)
	return path
}

func enhanced() servertest.Body {
	return decide("verified").With("verification_level", "enhanced", "reason", "source of funds documented")
}

// proposed proposes the level enhanced and returns the path of the decision.
func proposed(t *testing.T, path string, reviewer *servertest.Client) string {
	t.Helper()
	got := reviewer.Do("PATCH", path+"/status", enhanced()).Expect(t, http.StatusAccepted).JSON(t)
	decision, _ := got["pending_decision"].(map[string]any)
	if got["kyc_status"] != "in_review" || decision["state"] != "pending" || decision["verification_level"] != "enhanced" {
		t.Fatalf("got %v, want the customer in review and a pending decision", got)
	}
	return path + "/decisions/" + decision["id"].(string)
}

func TestFourEyes_EnhancedNeedsASecondPerson(t *testing.T) {
	s := servertest.Start(t)
	owner, first, second := s.User(access.Customer), s.User(access.Advisor), s.User(access.Advisor)
	path := inReview(t, owner, first)
	first.Do("PATCH", path+"/status", decide("verified").With("verification_level", "enhanced")).ExpectError(t, http.StatusBadRequest, "common.invalid_input")
	decision := proposed(t, path, first)
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "reviewers see it", As: second, Method: "GET", Path: path, Status: 200, Contains: []string{`"pending_decision":{"id"`, `"kyc_status":"in_review"`}},
		{Name: "the customer does not", As: owner, Method: "GET", Path: path, Status: 200, Contains: []string{`"pending_decision":null`, `"decisions":[]`},
			Excludes: []string{"source of funds"}},
		{Name: "nothing is decided beside it", As: second, Method: "PATCH", Path: path + "/status", Body: decide("rejected"), Status: 409,
			Contains: []string{`"customers.decision_waits"`}},
		{Name: "the first reviewer cannot confirm", As: first, Method: "POST", Path: decision + "/confirm", Status: 403, Contains: []string{`"customers.second_person_required"`}},
		{Name: "the first reviewer cannot reject", As: first, Method: "POST", Path: decision + "/reject", Body: map[string]any{"reason": "no"}, Status: 403},
		{Name: "a refusal has a reason", As: second, Method: "POST", Path: decision + "/reject", Body: map[string]any{"reason": " "}, Status: 400},
		{Name: "others cannot withdraw it", As: second, Method: "POST", Path: decision + "/withdraw", Status: 403},
		{Name: "the customer cannot confirm", As: owner, Method: "POST", Path: decision + "/confirm", Status: 403},
		{Name: "an unknown decision", As: second, Method: "POST", Path: path + "/decisions/0193b000-0000-7000-8000-000000000009/confirm", Status: 404},
		{Name: "a second person confirms", As: second, Method: "POST", Path: decision + "/confirm", Status: 200,
			Contains: []string{`"kyc_status":"verified"`, `"verification_level":"enhanced"`}},
		{Name: "once", As: second, Method: "POST", Path: decision + "/confirm", Status: 409, Contains: []string{`"customers.decision_not_pending"`, `"state":"confirmed"`}},
		{Name: "the history names both", As: second, Method: "GET", Path: path, Status: 200, Contains: []string{`"pending_decision":null`,
			`"proposed_by":"` + first.UserID, `"closed_by":"` + second.UserID, `"reason":"source of funds documented"`}},
	})
	if got := second.Do("GET", "/v1/notifications?search.event=kyc_decision_pending", nil).JSON(t)["total"]; got != 1.0 {
		t.Errorf("the second person has %v notifications, want 1", got)
	}
	if got := first.Do("GET", "/v1/notifications?search.event=kyc_decision_closed", nil).JSON(t)["total"]; got != 1.0 {
		t.Errorf("the first person has %v notifications, want 1", got)
	}
}

func TestFourEyes_ClosesADecisionWithoutEffect(t *testing.T) {
	s := servertest.Start(t)
	owner, first, second := s.User(access.Customer), s.User(access.Advisor), s.User(access.Advisor)
	for name, c := range map[string]struct {
		close func(t *testing.T, path, decision string)
		state string
	}{
		"rejected": {func(t *testing.T, _, decision string) {
			second.Do("POST", decision+"/reject", map[string]any{"reason": "the proof is missing"}).Expect(t, http.StatusOK)
		}, "rejected"},
		"withdrawn": {func(t *testing.T, _, decision string) {
			first.Do("POST", decision+"/withdraw", nil).Expect(t, http.StatusOK)
		}, "withdrawn"},
	} {
		t.Run(name, func(t *testing.T) {
			path := inReview(t, owner, first)
			decision := proposed(t, path, first)
			c.close(t, path, decision)
			got := second.Do("GET", path, nil).Expect(t, http.StatusOK)
			if !strings.Contains(got.Body, `"state":"`+c.state+`"`) || !strings.Contains(got.Body, `"kyc_status":"in_review"`) {
				t.Errorf("got %s, want in review and the decision %s", got.Body, c.state)
			}
			if got := cases(t, second, "&search.second_person=true"); got.Total != 0 {
				t.Errorf("the queue still has %+v", got)
			}
			second.Do("POST", decision+"/confirm", nil).ExpectError(t, http.StatusConflict, "customers.decision_not_pending")
			again := proposed(t, path, second) // the case can be decided again
			second.Do("POST", again+"/withdraw", nil).Expect(t, http.StatusOK)
		})
	}
}

// A change by the subject ends no decision. It cannot be confirmed any more, and waits for a reviewer.
func TestFourEyes_ASubjectsChangeClosesNothing(t *testing.T) {
	s := servertest.Start(t)
	owner, first, second := s.User(access.Customer), s.User(access.Advisor), s.User(access.Advisor)
	for name, change := range map[string]func(path string){
		"another expiry of a document": func(path string) {
			owner.Do("PUT", path, documents(document("passport", "P-1", "2031-01-01"))).Expect(t, http.StatusOK)
		},
		"another identity, and back": func(path string) {
			for _, last := range []string{"Anders", "Muster"} {
				owner.Do("PUT", strings.TrimSuffix(path, "/kyc"), map[string]any{"last_name": last}).Expect(t, http.StatusOK)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := inReview(t, owner, first)
			decision := proposed(t, path, first)
			change(path)
			pending, _ := second.Do("GET", path, nil).Expect(t, http.StatusOK).JSON(t)["pending_decision"].(map[string]any)
			if pending["state"] != "pending" || pending["outdated_since"] == nil {
				t.Errorf("got %v, want a pending decision that is outdated", pending)
			}
			query := "&search.second_person=true&search.customer_id=" + strings.TrimSuffix(strings.TrimPrefix(path, "/v1/customers/"), "/kyc")
			if got := cases(t, second, query); got.Total != 1 {
				t.Errorf("the queue has %+v", got)
			}
			second.Do("POST", decision+"/confirm", nil).ExpectError(t, http.StatusConflict, "customers.decision_outdated")
			second.Do("POST", decision+"/reject", map[string]any{"reason": "it has changed"}).Expect(t, http.StatusOK)
			again := proposed(t, path, second)
			first.Do("POST", again+"/confirm", nil).Expect(t, http.StatusOK)
		})
	}
}

// A document that expires while a decision waits is not confirmed with it.
func TestFourEyes_IsNotConfirmedWhenADocumentExpires(t *testing.T) {
	s := servertest.Start(t)
	owner, first, second := s.User(access.Customer), s.User(access.Advisor), s.User(access.Advisor)
	path := "/v1/customers/" + owner.Create("/v1/customers", person()) + "/kyc"
	owner.Do("PUT", path, documents(document("passport", "P-1", "2026-02-01"))).Expect(t, http.StatusOK)
	first.Do("PATCH", path+"/status", decide("in_review")).Expect(t, http.StatusOK)
	decision := proposed(t, path, first)
	s.Clock.Advance(3 * 24 * time.Hour)
	second = s.SignIn(second.UserID, "a long enough password 42")
	second.Do("POST", decision+"/confirm", nil).ExpectError(t, http.StatusConflict, "customers.decision_outdated")
	second.Do("POST", decision+"/reject", map[string]any{"reason": "expired"}).Expect(t, http.StatusOK)
}

func TestFourEyes_LinkedPersonasAreNoSecondPerson(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin()
	persona := func(of *servertest.Client, first, last, born string) string {
		id := admin.Create("/v1/personas", map[string]any{"first_name": first, "last_name": last, "date_of_birth": born})
		if of != nil {
			admin.Do("POST", "/v1/personas/"+id+"/users", map[string]any{"user_id": of.UserID}).Expect(t, http.StatusCreated)
		}
		return id
	}
	link := func(from, to, relation string) {
		admin.Do("POST", "/v1/personas/"+from+"/links", map[string]any{"linked_persona_id": to, "relation": relation}).Expect(t, http.StatusCreated)
	}
	for name, relate := range map[string]func(first, second *servertest.Client){
		"the spouse of the first": func(first, second *servertest.Client) {
			link(persona(first, "Urs", "Frei", "1980-01-01"), persona(second, "Eva", "Frei", "1981-01-01"), "spouse")
		},
		"linked from the other side": func(first, second *servertest.Client) {
			link(persona(second, "Ida", "Senn", "1980-01-01"), persona(first, "Max", "Senn", "2005-01-01"), "child")
		},
		"the same person": func(first, second *servertest.Client) {
			persona(first, "Leo", "Ott", "1980-01-01")
			persona(second, "LEO", "Ott", "1980-01-01")
		},
		"one persona of both": func(first, second *servertest.Client) {
			id := persona(first, "Pia", "Roth", "1980-01-01")
			admin.Do("POST", "/v1/personas/"+id+"/users", map[string]any{"user_id": second.UserID}).Expect(t, http.StatusCreated)
		},
		"the parent of the customer": func(_, second *servertest.Client) {
			link(persona(nil, "Ada", "Muster", "1990-02-28"), persona(second, "Otto", "Muster", "1960-02-28"), "parent")
		},
	} {
		t.Run(name, func(t *testing.T) {
			first, second, third := s.User(access.Advisor), s.User(access.Advisor), s.User(access.Advisor)
			relate(first, second)
			path := inReview(t, third, first) // recorded by the bank
			decision := proposed(t, path, first)
			second.Do("POST", decision+"/confirm", nil).ExpectError(t, http.StatusForbidden, "customers.second_person_required")
			third.Do("POST", decision+"/confirm", nil).Expect(t, http.StatusOK)
		})
	}
}

func TestFourEyes_FollowsTheSetting(t *testing.T) {
	for name, c := range map[string]struct {
		mode                          string
		enhanced, verified, rejection int
	}{
		"off":      {"off", 200, 200, 200},
		"enhanced": {"enhanced", 202, 200, 200},
		"always":   {"always", 202, 202, 202},
	} {
		t.Run(name, func(t *testing.T) {
			s := servertest.Start(t, fourEyes(c.mode))
			owner, advisor := s.User(access.Customer), s.User(access.Advisor)
			advisor.Do("PATCH", inReview(t, owner, advisor)+"/status", enhanced()).Expect(t, c.enhanced)
			advisor.Do("PATCH", inReview(t, owner, advisor)+"/status", decide("verified").With("reason", "checked")).Expect(t, c.verified)
			advisor.Do("PATCH", inReview(t, owner, advisor)+"/status", decide("rejected").With("reason", "forged")).Expect(t, c.rejection)
			advisor.Do("PATCH", inReview(t, owner, advisor)+"/status", decide("action_required")).Expect(t, http.StatusOK)
			path := "/v1/customers/" + owner.Create("/v1/customers", person()) + "/kyc"
			got := advisor.Do("PUT", path, passport("P-1").With("verified_at", "2026-01-31T08:00:00Z", "reason", "seen")).Expect(t, c.verified).JSON(t)
			if want := map[bool]string{true: "pending", false: "verified"}[c.verified == 202]; got["kyc_status"] != want {
				t.Errorf("the customer is %v, want %s", got["kyc_status"], want)
			}
		})
	}
}

// Two persons who confirm and reject at the same time: one of them decides.
func TestFourEyes_OneOfManyDecides(t *testing.T) {
	s := servertest.Start(t)
	owner, first := s.User(access.Customer), s.User(access.Advisor)
	path := inReview(t, owner, first)
	decision := proposed(t, path, first)
	var wait sync.WaitGroup
	statuses := make([]int, 8)
	for i := range statuses {
		other := s.User(access.Advisor)
		wait.Go(func() {
			what, body := "/confirm", any(nil)
			if i%2 > 0 {
				what, body = "/reject", map[string]any{"reason": "no"}
			}
			got, err := other.Try("POST", decision+what, body)
			if err != nil {
				t.Error(err)
			}
			statuses[i] = got.Status
		})
	}
	wait.Wait()
	counts := map[int]int{}
	for _, status := range statuses {
		counts[status]++
	}
	if counts[200] != 1 || counts[409] != 7 {
		t.Errorf("outcomes %v, want one 200 and seven 409", counts)
	}
}
