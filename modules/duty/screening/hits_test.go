package screening_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
)

const hitsPath = "/v1/screening/hits"

type aHit struct {
	ID, Status, List, Decision, Reason string
	Score                              float64
	SourceID                           string `json:"source_id"`
	SubjectType                        string `json:"subject_type"`
	SubjectID                          string `json:"subject_id"`
	SubjectName                        string `json:"subject_name"`
	Version                            int64
	Entry                              *struct{ Names []string }
	Subject                            struct {
		Name        string
		DateOfBirth string `json:"date_of_birth"`
	}
	Matched []struct{ Query, Entry string }
	Cause   string
	Later   *struct {
		Score   float64
		Subject struct{ Name string }
	}
	Escalation string
	History    []struct{ Action, Status, Reason string }
}

// rescreen runs the comparison until nothing is left.
func rescreen(t testing.TB, s *servertest.Server) {
	t.Helper()
	if err := s.Screening.Rescreen(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func hits(t testing.TB, c *servertest.Client, query string) []aHit {
	t.Helper()
	var page struct{ Data []aHit }
	c.Do("GET", hitsPath+query, nil).Expect(t, http.StatusOK).Into(t, &page)
	return page.Data
}

func one(t testing.TB, c *servertest.Client, id string) (h aHit) {
	t.Helper()
	c.Do("GET", hitsPath+"/"+id, nil).Expect(t, http.StatusOK).Into(t, &h)
	return h
}

func viktor() object {
	return object{"first_name": "Viktor", "last_name": "Beispielow", "email": "v@example.ch", "date_of_birth": "1960-05-17", "nationality": "RUS",
		"address": object{"street": "Hauptstrasse 1", "city": "Bern", "postal_code": "3000", "country": "CH"}}
}

// listed starts a server with the sample list and a customer who is on it.
func listed(t testing.TB, options ...servertest.Option) (s *servertest.Server, customer string) {
	t.Helper()
	s = servertest.Start(t, options...)
	load(t, s.Admin(), "Sample", people).Expect(t, http.StatusCreated)
	customer = s.User(access.Customer).Create("/v1/customers", viktor())
	rescreen(t, s)
	return s, customer
}

// open returns the only hit, which must be open.
func open(t testing.TB, c *servertest.Client) aHit {
	t.Helper()
	all := hits(t, c, "?search.status=open")
	if len(all) != 1 {
		t.Fatalf("%d open hits, want 1: %+v", len(all), all)
	}
	return all[0]
}

func decision(what string) object {
	return object{"decision": what, "reason": "Compared with the passport."}
}

func TestHits_FollowCustomersPersonasAndPayers(t *testing.T) {
	s := servertest.Start(t)
	admin, advisor := s.Admin(), s.User(access.Advisor)
	early := admin.Create("/v1/customers", viktor())
	rescreen(t, s)
	load(t, admin, "Sample", people).Expect(t, http.StatusCreated)
	rescreen(t, s)
	if h := open(t, advisor); h.SubjectID != early || h.SourceID != "P1" || h.Score < 0.9 || h.SubjectName != "Viktor Beispielow" {
		t.Fatalf("the stored customer: %+v", h)
	}
	company := admin.Create("/v1/customers", object{"type": "business", "last_name": "Zufall Handels AG", "email": "z@example.ch"})
	persona := admin.Create("/v1/personas", object{"first_name": "Hans", "last_name": "Zufall", "date_of_birth": "1970-03-03"})
	clean := admin.Create("/v1/customers", object{"first_name": "Anna", "last_name": "Muster", "email": "a@example.ch"})
	payer := admin.Create("/v1/payers", object{"customer_id": clean, "name": "Beispielow, Viktor"})
	rescreen(t, s)
	want := map[string]string{early: "P1", company: "C1", persona: "P2", payer: "P1"}
	all := hits(t, advisor, "?search.status=open&sort=created_at")
	for _, h := range all {
		if want[h.SubjectID] != h.SourceID {
			t.Errorf("unexpected hit %+v", h)
		}
		delete(want, h.SubjectID)
	}
	if len(want) > 0 {
		t.Errorf("no hits of %v", want)
	}
	admin.Do("DELETE", "/v1/payers/"+payer, nil).Expect(t, http.StatusOK)
	rescreen(t, s)
	if h := hits(t, advisor, "?search.subject_id="+payer); len(h) != 1 || h[0].Status != "open" {
		t.Errorf("the hit of an archived payer: %+v", h)
	}
	rescreen(t, s)
	if again := hits(t, advisor, ""); len(again) != len(all) {
		t.Errorf("%d hits after a further run, want %d", len(again), len(all))
	}
}

func TestHit_ShowsBothSidesAndTheHistory(t *testing.T) {
	s, _ := listed(t)
	advisor := s.User(access.Advisor)
	h := one(t, advisor, open(t, advisor).ID)
	if h.Subject.Name != "Viktor Beispielow" || h.Subject.DateOfBirth != "1960-05-17" || h.Entry == nil || h.Entry.Names[0] != "Viktor Beispielow" ||
		len(h.Matched) != 2 || len(h.History) != 1 || h.History[0].Action != "opened" {
		t.Errorf("got %+v", h)
	}
	for _, query := range []string{"?sort=-score", "?sort=subject_name", "?search.list=sample&search.subject_type=customer", "?stack=status", "?distinct=list"} {
		advisor.Do("GET", hitsPath+query, nil).Expect(t, http.StatusOK)
	}
	if csv := advisor.With("Accept", "text/csv").Do("GET", hitsPath, nil).Expect(t, http.StatusOK).Body; !strings.Contains(csv, "Viktor Beispielow") {
		t.Errorf("the table: %s", csv)
	}
}

func TestDecide_DismissalHoldsUntilASideChanges(t *testing.T) {
	s, customer := listed(t)
	admin, advisor := s.Admin(), s.User(access.Advisor)
	id := open(t, advisor).ID
	path := hitsPath + "/" + id
	advisor.With("If-Match", `"v9"`).Do("POST", path+"/decide", decision("dismissed")).Expect(t, http.StatusPreconditionFailed)
	advisor.Do("POST", path+"/decide", object{"decision": "dismissed", "reason": " "}).Expect(t, http.StatusBadRequest)
	advisor.Do("POST", path+"/decide", decision("closed")).Expect(t, http.StatusBadRequest)
	advisor.With("If-Match", `"v1"`).Do("POST", path+"/decide", decision("dismissed")).Expect(t, http.StatusOK)
	advisor.Do("POST", path+"/decide", decision("dismissed")).ExpectError(t, http.StatusConflict, "screening.hit_not_open")
	status := func(want, why string) {
		t.Helper()
		rescreen(t, s)
		if h := one(t, advisor, id); h.Status != want {
			t.Errorf("%s: %s, want %s", why, h.Status, want)
		}
	}
	load(t, admin, "Other", sample+line("X1", "Person", "Somebody Else", "", "")).Expect(t, http.StatusCreated)
	status("dismissed", "another list was loaded")
	admin.Do("PUT", "/v1/customers/"+customer, object{"email": "other@example.ch"}).Expect(t, http.StatusOK)
	status("dismissed", "another address")
	load(t, admin, "Sample", strings.Replace(people, "1960-05-17", "1961-05-17", 1)).Expect(t, http.StatusCreated)
	status("open", "the entry has changed")
	advisor.Do("POST", path+"/decide", decision("dismissed")).Expect(t, http.StatusOK)
	admin.Do("PUT", "/v1/customers/"+customer, object{"date_of_birth": "1961-05-17"}).Expect(t, http.StatusOK)
	status("open", "the identity has changed")
	admin.Do("PUT", "/v1/customers/"+customer, object{"first_name": "Anna", "last_name": "Muster"}).Expect(t, http.StatusOK)
	status("open", "another name")
	admin.Do("PUT", "/v1/customers/"+customer, object{"first_name": "Viktor", "last_name": "Beispielow"}).Expect(t, http.StatusOK)
	status("open", "the name again")
	load(t, admin, "Sample", sample+line("P2", "Person", "Hans Zufall", "1970", "ch")).Expect(t, http.StatusCreated)
	status("closed", "the entry has vanished")
	if h := one(t, advisor, id); h.Entry != nil || h.History[0].Action != "closed" {
		t.Errorf("a vanished entry: %+v", h)
	}
}

func TestHits_CloseWithTheLastList(t *testing.T) {
	s, _ := listed(t)
	advisor := s.User(access.Advisor)
	id := open(t, advisor).ID
	list := s.Admin().Do("GET", path, nil).Expect(t, http.StatusOK).JSON(t)["data"].([]any)[0].(object)["id"].(string)
	s.Admin().Do("DELETE", path+"/"+list, nil).Expect(t, http.StatusOK)
	rescreen(t, s)
	if h := one(t, advisor, id); h.Status != "closed" {
		t.Errorf("got %+v", h)
	}
}

func TestDecide_ConfirmationNeedsASecondPerson(t *testing.T) {
	s, _ := listed(t, func(o *settings.Settings) { o.KYC.FourEyes = "off" })
	first, second := s.User(access.Advisor), s.User(access.Advisor)
	path := hitsPath + "/" + open(t, first).ID + "/decide"
	if got := first.Do("POST", path, decision("confirmed")).Expect(t, http.StatusAccepted).JSON(t); got["status"] != "pending" || got["proposed_by"] != first.UserID {
		t.Fatalf("got %v", got)
	}
	first.Do("POST", path, decision("confirmed")).ExpectError(t, http.StatusForbidden, "customers.second_person_required")
	second.Do("POST", path, decision("dismissed")).ExpectError(t, http.StatusConflict, "screening.decision_waits")
	second.Do("POST", path, decision("open")).Expect(t, http.StatusOK)
	if h := open(t, first); h.Decision != "" || h.Reason != "" {
		t.Errorf("a proposal that was taken back: %+v", h)
	}
	first.Do("POST", path, decision("confirmed")).Expect(t, http.StatusAccepted)
	if got := second.Do("POST", path, decision("confirmed")).Expect(t, http.StatusOK).JSON(t); got["status"] != "confirmed" || got["decided_by"] != second.UserID {
		t.Errorf("got %v", got)
	}
	first.Do("POST", path, decision("open")).ExpectError(t, http.StatusConflict, "screening.hit_not_open")
	first.Do("POST", path, decision("dismissed")).Expect(t, http.StatusAccepted)
	first.Do("POST", path, decision("open")).Expect(t, http.StatusOK)
	if all := hits(t, first, "?search.status=confirmed"); len(all) != 1 {
		t.Errorf("a withdrawn dismissal: %+v", all)
	}
	first.Do("POST", path, decision("dismissed")).Expect(t, http.StatusAccepted)
	second.Do("POST", path, decision("dismissed")).Expect(t, http.StatusOK)
}

func TestDecide_AlwaysBySecondPersons(t *testing.T) {
	s, _ := listed(t, func(o *settings.Settings) { o.KYC.FourEyes = "always" })
	first := s.User(access.Advisor)
	path := hitsPath + "/" + open(t, first).ID + "/decide"
	first.Do("POST", path, decision("dismissed")).Expect(t, http.StatusAccepted)
	first.Do("POST", path, decision("dismissed")).ExpectError(t, http.StatusForbidden, "customers.second_person_required")
	s.User(access.Advisor).Do("POST", path, decision("dismissed")).Expect(t, http.StatusOK)
}

// passport submits a passport and puts the customer in review.
func inReview(t testing.TB, c *servertest.Client, customer string) (kyc string) {
	t.Helper()
	kyc = "/v1/customers/" + customer + "/kyc"
	c.Do("PUT", kyc, object{"documents": []object{{"type": "passport", "number": "P-1", "expiry_date": "2030-01-01", "country": "RUS"}}}).Expect(t, http.StatusOK)
	c.Do("PATCH", kyc+"/status", object{"kyc_status": "in_review"}).Expect(t, http.StatusOK)
	return kyc
}

// Every way to verified asks for hits, also for those that the comparison in the background has not found yet.
func TestVerification_IsBlockedByHits(t *testing.T) {
	s := servertest.Start(t)
	advisor, second := s.User(access.Advisor), s.User(access.Advisor)
	load(t, s.Admin(), "Sample", people).Expect(t, http.StatusCreated)
	kyc := inReview(t, advisor, advisor.Create("/v1/customers", viktor()))
	blocked := func(c *servertest.Client, method, path string, body object) {
		t.Helper()
		r := c.Do(method, path, body)
		r.ExpectError(t, http.StatusConflict, "customers.screening_open")
		if !strings.Contains(r.Body, `"hits":["`) {
			t.Errorf("the error does not name the hits: %s", r.Body)
		}
	}
	verify := object{"kyc_status": "verified"}
	blocked(advisor, "PATCH", kyc+"/status", verify)
	blocked(advisor, "PATCH", kyc+"/status", object{"kyc_status": "verified", "verification_level": "enhanced", "reason": "Seen."})
	blocked(advisor, "PUT", kyc, object{"verified_at": "2026-01-31T08:00:00Z"})
	h := open(t, advisor)
	if r := advisor.Do("GET", kyc, nil).Expect(t, http.StatusOK); !strings.Contains(r.Body, h.ID) {
		t.Errorf("the verification does not show the hit: %s", r.Body)
	}
	advisor.Do("POST", hitsPath+"/"+h.ID+"/decide", decision("dismissed")).Expect(t, http.StatusOK)
	advisor.Do("PATCH", kyc+"/status", object{"kyc_status": "verified", "verification_level": "enhanced", "reason": "Seen."}).Expect(t, http.StatusAccepted)
	advisor.Do("POST", hitsPath+"/"+h.ID+"/decide", decision("open")).Expect(t, http.StatusOK)
	pending := advisor.Do("GET", kyc, nil).JSON(t)["pending_decision"].(object)["id"].(string)
	blocked(second, "POST", kyc+"/decisions/"+pending+"/confirm", nil)
	advisor.Do("POST", hitsPath+"/"+h.ID+"/decide", decision("dismissed")).Expect(t, http.StatusOK)
	second.Do("POST", kyc+"/decisions/"+pending+"/confirm", nil).Expect(t, http.StatusOK)
	advisor.Do("POST", hitsPath+"/"+h.ID+"/decide", decision("open")).Expect(t, http.StatusOK)
	blocked(advisor, "PATCH", kyc+"/status", object{"verification_level": "standard"})
	advisor.Do("PATCH", kyc+"/status", object{"kyc_status": "expired"}).Expect(t, http.StatusOK)
}

// A hit of a payer blocks the customer; one of a persona does not.
func TestVerification_IsBlockedByPayers(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	load(t, s.Admin(), "Sample", people).Expect(t, http.StatusCreated)
	anna := viktor()
	anna["first_name"], anna["last_name"] = "Anna", "Muster"
	customer := advisor.Create("/v1/customers", anna)
	kyc := inReview(t, advisor, customer)
	payer := advisor.Create("/v1/payers", object{"customer_id": customer, "name": "Viktor Beispielow"})
	rescreen(t, s)
	advisor.Do("PATCH", kyc+"/status", object{"kyc_status": "verified"}).ExpectError(t, http.StatusConflict, "customers.screening_open")
	s.Admin().Do("DELETE", "/v1/payers/"+payer, nil).Expect(t, http.StatusOK)
	rescreen(t, s)
	advisor.Do("PATCH", kyc+"/status", object{"kyc_status": "verified"}).ExpectError(t, http.StatusConflict, "customers.screening_open")
	advisor.Do("POST", hitsPath+"/"+open(t, advisor).ID+"/decide", decision("dismissed")).Expect(t, http.StatusOK)
	advisor.Do("PATCH", kyc+"/status", object{"kyc_status": "verified"}).Expect(t, http.StatusOK)
}

func TestHits_ScoresAreSearchedAndSortedAsNumbers(t *testing.T) {
	s := servertest.Start(t)
	admin, advisor := s.Admin(), s.User(access.Advisor)
	load(t, admin, "Sample", people).Expect(t, http.StatusCreated)
	exact := admin.Create("/v1/customers", viktor())
	alike := viktor()
	alike["last_name"], alike["email"] = "Beispielov", "w@example.ch"
	other := admin.Create("/v1/customers", alike)
	rescreen(t, s)
	all := hits(t, advisor, "?sort=score")
	if len(all) != 2 || all[0].SubjectID != other || all[1].SubjectID != exact || all[0].Score >= all[1].Score || all[1].Score != 1 {
		t.Fatalf("by score: %+v", all)
	}
	if last := hits(t, advisor, "?sort=-score&limit=1"); last[0].SubjectID != exact {
		t.Errorf("the best: %+v", last)
	}
	low := strconv.FormatFloat(all[0].Score, 'f', -1, 64)
	for query, want := range map[string]int{
		"0.7..": 2, "0..1": 2, ".7..1.0": 2, "..1": 2, "1": 1, "1.0": 1, "1.0000": 1, "1,1": 1, low: 1, low + "..1": 2, low + "0": 1, ".." + low: 1, low + "01..": 1,
		"..0.9999": 1, "0.9999..": 1, "0.9999": 0, "..0.2": 0, "2..": 0, "-5..100": 2, "1e-1..": 2, "..-1": 0, "9..10": 0, "1..0": 0, "high": 0, "NaN..": 0, "-Inf..Inf": 2,
		low + ",1": 2, "1*": 0,
	} {
		if got := hits(t, advisor, "?search.score="+query); len(got) != want {
			t.Errorf("score %s: %d hits, want %d", query, len(got), want)
		}
	}
	for _, query := range []string{"?stack=-score", "?distinct=score"} {
		advisor.Do("GET", hitsPath+query, nil).Expect(t, http.StatusOK)
	}
}

func TestCases_CountTheHitsThatBlock(t *testing.T) {
	s, customer := listed(t)
	advisor := s.User(access.Advisor)
	inReview(t, advisor, customer)
	other := advisor.Create("/v1/customers", object{"first_name": "Anna", "last_name": "Muster", "email": "anna@example.ch"})
	inReview(t, advisor, other)
	count := func(query string) map[string]int {
		var page struct {
			Data []struct {
				CustomerID   string `json:"customer_id"`
				BlockingHits int    `json:"blocking_hits"`
			}
		}
		advisor.Do("GET", "/v1/kyc/cases"+query, nil).Expect(t, http.StatusOK).Into(t, &page)
		counts := map[string]int{}
		for _, c := range page.Data {
			counts[c.CustomerID] = c.BlockingHits
		}
		return counts
	}
	advisor.Create("/v1/payers", object{"customer_id": customer, "name": "Beispielow, Viktor"})
	rescreen(t, s)
	if got := count(""); got[customer] != 2 || got[other] != 0 || len(got) != 2 {
		t.Errorf("got %v, want 2 hits of the customer and the payer", got)
	}
	for _, h := range hits(t, advisor, "?search.status=open") {
		advisor.Do("POST", hitsPath+"/"+h.ID+"/decide", decision("dismissed")).Expect(t, http.StatusOK)
	}
	if got := count("?sort=-opened_at"); got[customer] != 0 || len(got) != 2 {
		t.Errorf("after the dismissal: %v", got)
	}
	if csv := advisor.With("Accept", "text/csv").Do("GET", "/v1/kyc/cases", nil).Expect(t, http.StatusOK).Body; !strings.Contains(csv, "blocking_hits") {
		t.Errorf("the table: %s", csv)
	}
}
