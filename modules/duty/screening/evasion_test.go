package screening_test

import (
	"net/http"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
)

// A listed person is found however they write their name, and as which type they register.
func TestHits_AreNotEvaded(t *testing.T) {
	s := servertest.Start(t)
	advisor, customer := s.User(access.Advisor), s.User(access.Customer)
	load(t, s.Admin(), "Sample", people).Expect(t, http.StatusCreated)
	for name, c := range map[string]struct {
		customer object
		source   string
	}{
		"a person as a company":      {object{"type": "business", "last_name": "Viktor Beispielow"}, "P1"},
		"a company as a person":      {object{"first_name": "Zufall", "last_name": "Handels AG"}, "C1"},
		"letters that look alike":    {object{"first_name": "Vіktоr", "last_name": "Веispielow"}, "P1"},
		"Cyrillic capitals":          {object{"first_name": "НАNS", "last_name": "ZUFALL"}, "P2"},
		"a slash":                    {object{"first_name": "Viktor", "last_name": "/Beispielow"}, "P1"},
		"a slash at the end":         {object{"first_name": "Viktor", "last_name": "Beispielow/"}, "P1"},
		"a slash between":            {object{"first_name": "Beispielow/", "last_name": "Viktor"}, "P1"},
		"a semicolon":                {object{"first_name": "Viktor;", "last_name": "Beispielow;"}, "P1"},
		"alias":                      {object{"first_name": "Viktor alias", "last_name": "Beispielow"}, "P1"},
		"aka":                        {object{"first_name": "Viktor aka Anna", "last_name": "aka Beispielow"}, "P1"},
		"spaced letters":             {object{"first_name": "V I K T O R", "last_name": "B E I S P I E L O W"}, "P1"},
		"spaced letters in company":  {object{"type": "business", "last_name": "B e i s p i e l o w V i k t o r"}, "P1"},
		"single letters between":     {object{"first_name": "Viktor A B C", "last_name": "Beispielow"}, "P1"},
		"many other words":           {object{"first_name": "Viktor aa bb cc dd ee ff gg hh ii jj kk ll mm", "last_name": "Beispielow"}, "P1"},
		"a title and no name before": {object{"first_name": "FNU", "last_name": "Beispielow Viktor"}, "P1"},
	} {
		body := c.customer
		body["email"] = "x@example.ch"
		id := customer.Create("/v1/customers", body)
		rescreen(t, s)
		found := false
		for _, h := range hits(t, advisor, "?search.subject_id="+id) {
			found = found || h.SourceID == c.source && h.Status == "open"
		}
		if !found {
			t.Errorf("%s: no hit with %s", name, c.source)
		}
	}
}

// A name that a program cannot compare goes to a person.
func TestHits_OfDoubtfulNames(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	load(t, s.Admin(), "Sample", people).Expect(t, http.StatusCreated)
	for name, want := range map[string]string{"Nоbody Known": "mixed_scripts", strings.Repeat("ab ", 32) + "Ko": "many_parts", "N K": "single_letters", "N O B O D Y": "single_letters"} {
		first, last, _ := strings.Cut(name, " ")
		id := s.User(access.Customer).Create("/v1/customers", object{"first_name": first, "last_name": last, "email": "n@example.ch",
			"date_of_birth": "1980-01-01", "nationality": "CHE"})
		kyc := inReview(t, advisor, id)
		advisor.Do("PATCH", kyc+"/status", object{"kyc_status": "verified"}).ExpectError(t, http.StatusConflict, "customers.screening_open")
		found := hits(t, advisor, "?search.subject_id="+id+"&search.cause="+want)
		if len(found) != 1 || found[0].Cause != want || found[0].Status != "open" {
			t.Errorf("%s: %+v", name, found)
			continue
		}
		one(t, advisor, found[0].ID)
		advisor.Do("POST", hitsPath+"/"+found[0].ID+"/decide", decision("dismissed")).Expect(t, http.StatusOK)
		advisor.Do("PATCH", kyc+"/status", object{"kyc_status": "verified"}).Expect(t, http.StatusOK)
	}
	if r := advisor.Do("POST", "/v1/screening/check", object{"name": "Nоbody Known"}).Expect(t, http.StatusOK); !strings.Contains(r.Body, `"doubt":"mixed_scripts"`) {
		t.Errorf("a check: %s", r.Body)
	}
}

// A listed person cannot end a hit by another name: the new comparison stands beside the old one.
func TestHits_StayAfterARename(t *testing.T) {
	s := servertest.Start(t)
	advisor, self := s.User(access.Advisor), s.User(access.Customer)
	load(t, s.Admin(), "Sample", people).Expect(t, http.StatusCreated)
	customer := self.Create("/v1/customers", viktor())
	rescreen(t, s)
	kyc, id := inReview(t, advisor, customer), open(t, advisor).ID
	rename := func(first, last string) aHit {
		t.Helper()
		self.Do("PUT", "/v1/customers/"+customer, object{"first_name": first, "last_name": last}).Expect(t, http.StatusOK)
		rescreen(t, s)
		return one(t, advisor, id)
	}
	blocked := func() {
		t.Helper()
		advisor.Do("PATCH", kyc+"/status", object{"kyc_status": "verified"}).ExpectError(t, http.StatusConflict, "customers.screening_open")
	}
	if h := rename("Anna", "Muster"); h.Status != "open" || h.SubjectName != "Viktor Beispielow" || h.Score < 0.9 || h.Later == nil || h.Later.Subject.Name != "Anna Muster" || h.Later.Score != 0 {
		t.Fatalf("after a rename: %+v", h)
	}
	blocked()
	if h := rename("Viktor", "Beispielov"); h.Status != "open" || h.SubjectName != "Viktor Beispielow" || h.Later == nil || h.Later.Score < 0.7 {
		t.Errorf("after a similar name: %+v", h)
	}
	if h := rename("Viktor", "Beispielow"); h.Later != nil {
		t.Errorf("with the first name again: %+v", h)
	}
	rename("Anna", "Muster")
	advisor.Do("POST", hitsPath+"/"+id+"/decide", decision("dismissed")).Expect(t, http.StatusOK)
	advisor.Do("PATCH", kyc+"/status", object{"kyc_status": "verified"}).Expect(t, http.StatusOK)
	if h := rename("Viktor", "Beispielow"); h.Status != "dismissed" {
		t.Errorf("the name that was dismissed: %+v", h)
	}
	if h := rename("Viktor", "Beispielov"); h.Status != "open" || h.SubjectName != "Viktor Beispielov" {
		t.Errorf("a name that nobody has seen: %+v", h)
	}
}

// A pending decision ends by a reviewer, also if the subject takes another name meanwhile.
func TestDecide_APendingDecisionStaysAfterARename(t *testing.T) {
	s := servertest.Start(t, func(o *settings.Settings) { o.KYC.FourEyes = "always" })
	first, second, self := s.User(access.Advisor), s.User(access.Advisor), s.User(access.Customer)
	load(t, s.Admin(), "Sample", people).Expect(t, http.StatusCreated)
	customer := self.Create("/v1/customers", viktor())
	rescreen(t, s)
	id := open(t, first).ID
	decide := func(c *servertest.Client, what string, status int) {
		t.Helper()
		c.Do("POST", hitsPath+"/"+id+"/decide", decision(what)).Expect(t, status)
	}
	rename := func(first, last string) {
		t.Helper()
		self.Do("PUT", "/v1/customers/"+customer, object{"first_name": first, "last_name": last}).Expect(t, http.StatusOK)
		rescreen(t, s)
	}
	decide(first, "confirmed", http.StatusAccepted)
	for _, name := range []string{"Muster", "Beispielov"} {
		rename("Viktor", name)
		if h := one(t, first, id); h.Status != "pending" || h.Decision != "confirmed" || h.Later == nil {
			t.Fatalf("as %s: %+v", name, h)
		}
	}
	decide(second, "confirmed", http.StatusOK)
	rename("Anna", "Muster")
	if h := one(t, first, id); h.Status != "confirmed" || h.SubjectName != "Viktor Beispielow" {
		t.Errorf("confirmed, and renamed: %+v", h)
	}
	decide(first, "dismissed", http.StatusAccepted)
	rename("Viktor", "Beispielov") // the proposer has not seen it
	decide(second, "dismissed", http.StatusOK)
	if h := one(t, first, id); h.Status != "open" || h.SubjectName != "Viktor Beispielov" || h.History[0].Action != "reopened" || h.History[1].Action != "decided" {
		t.Errorf("a dismissal of another name: %+v", h)
	}
	decide(first, "dismissed", http.StatusAccepted)
	decide(second, "dismissed", http.StatusOK)
	rescreen(t, s)
	if h := one(t, first, id); h.Status != "dismissed" {
		t.Errorf("the dismissal of the present name: %+v", h)
	}
}

// A hit that all reviewers are excluded from goes to administrators.
func TestHits_AreEscalated(t *testing.T) {
	s := servertest.Start(t)
	admin, advisor := s.Admin(), s.User(access.Advisor)
	body := viktor()
	body["email"] = "user1@example.ch" // of the advisor
	load(t, admin, "Sample", people).Expect(t, http.StatusCreated)
	customer := admin.Create("/v1/customers", body)
	rescreen(t, s)
	if seen := hits(t, advisor, ""); len(seen) != 0 {
		t.Fatalf("the subject sees %+v", seen)
	}
	h := one(t, admin, open(t, admin).ID)
	if h.Escalation != "reviewers" || h.History[0].Action != "escalated" {
		t.Errorf("the hit: %+v", h)
	}
	told := func(c *servertest.Client) bool {
		return strings.Contains(c.Do("GET", "/v1/notifications", nil).Expect(t, http.StatusOK).Body, "screening_escalated")
	}
	if !told(admin) || told(advisor) {
		t.Errorf("told are the administrator %v, the subject %v", told(admin), told(advisor))
	}
	other := s.User(access.Advisor)
	if err := s.Screening.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if h := one(t, other, h.ID); h.Escalation != "" || h.Status != "open" {
		t.Errorf("with a further reviewer: %+v", h)
	}
	report := func(c *servertest.Client) string {
		return c.Do("GET", "/v1/customers/"+customer+"/report", nil).Expect(t, http.StatusOK).Body
	}
	if !strings.Contains(report(admin), h.ID) {
		t.Error("the report lacks the hit")
	}
}

// An administrator who is the subject does not read their own hits in the report, and a hit about all reviewers is marked.
func TestReport_HidesTheReadersOwnHits(t *testing.T) {
	s := servertest.Start(t)
	self := s.Admin()
	body := viktor()
	body["email"] = servertest.AdminEmail
	load(t, self, "Sample", people).Expect(t, http.StatusCreated)
	customer := self.Create("/v1/customers", body)
	rescreen(t, s)
	var status, escalation, id string
	if err := s.DB.QueryRow(t.Context(), "SELECT id, status, escalation FROM screening_hits").Scan(&id, &status, &escalation); err != nil || status != "open" || escalation != "everyone" {
		t.Fatalf("%s %s %v", status, escalation, err)
	}
	for _, path := range []string{"/report", "/export"} {
		if got := self.Do("GET", "/v1/customers/"+customer+path, nil).Expect(t, http.StatusOK).Body; strings.Contains(got, id) || strings.Contains(got, "screening") {
			t.Errorf("%s: %s", path, got)
		}
	}
	other := s.User(access.Administrator)
	if got := other.Do("GET", "/v1/customers/"+customer+"/report", nil).Expect(t, http.StatusOK).Body; !strings.Contains(got, id) {
		t.Errorf("the report of another administrator: %s", got)
	}
}
