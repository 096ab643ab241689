package customers_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

// passport returns a request that submits a passport, valid long after the clock of the tests.
func passport(number string) servertest.Body {
	return documents(document("passport", number, "2030-01-01"))
}

func document(kind, number, expiry string) servertest.Body {
	return servertest.Body{"type": kind, "number": number, "expiry_date": expiry, "country": "CHE"}
}

func documents(list ...servertest.Body) servertest.Body { return servertest.Body{"documents": list} }

func decide(status string) servertest.Body { return servertest.Body{"kyc_status": status} }

func TestKYC_GoesFromDocumentsToVerified(t *testing.T) {
	s := servertest.Start(t)
	owner, advisor := s.User(access.Customer), s.User(access.Advisor)
	path := "/v1/customers/" + newCustomer(owner) + "/kyc"
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "initially an identity document is due", As: owner, Method: "GET", Path: path, Status: 200,
			Contains: []string{`"kyc_status":"not_started"`, `"currently_due":["identity_document"]`, `"documents":[]`, `"history":[]`}},
		{Name: "documents change it to pending; the owner's verified_at is ignored", As: owner, Method: "PUT", Path: path,
			Body: passport("X1234567").With("verified_at", "2026-01-30T10:00:00Z"), Status: 200,
			Contains: []string{`"kyc_status":"pending"`, `"verification_level":"none"`}},
		{Name: "no state can be skipped", As: advisor, Method: "PATCH", Path: path + "/status", Body: decide("verified"), Status: 409,
			Contains: []string{`"customers.invalid_kyc_transition"`, `"allowed":["in_review"]`}},
		{Name: "review begins", As: advisor, Method: "PATCH", Path: path + "/status", Body: decide("in_review"), Status: 200},
		{Name: "review ends with verified", As: advisor, Method: "PATCH", Path: path + "/status", Body: decide("verified").With("reason", "seen in person"), Status: 200,
			Contains: []string{`"kyc_status":"verified"`, `"verification_level":"basic"`}},
		{Name: "the history has all changes", As: owner, Method: "GET", Path: path, Status: 200,
			Contains: []string{`"from":"in_review","to":"verified"`, `"reason":"seen in person"`, `"from":"not_started","to":"pending"`,
				`"transitions":{"expired":["reviewer","system"],"in_review":["system"]}`, `"X1234567"`}},
		{Name: "a proof of address is due for the next level", As: owner, Method: "GET", Path: path, Status: 200,
			Contains: []string{`"currently_due":["proof_of_address"]`}},
	})
}

func TestSubmitKYC_VerifiesForAReviewer(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	path := "/v1/customers/" + newCustomer(advisor) + "/kyc"
	now := "2026-01-31T08:00:00Z"
	if answer := advisor.Do("PUT", path, map[string]any{"verified_at": now}); answer.Status != 409 {
		t.Errorf("without a document: got %d %s, want 409", answer.Status, answer.Body)
	}
	if answer := advisor.Do("PUT", path, passport("P1").With("verified_at", "2027-01-01T00:00:00Z")); answer.Status != 400 {
		t.Errorf("in the future: got %d %s, want 400", answer.Status, answer.Body)
	}
	answer := advisor.Do("PUT", path, passport("P1").With("verified_at", now)).Expect(t, http.StatusOK)
	if body := answer.JSON(t); body["kyc_status"] != "verified" || body["verification_level"] != "basic" {
		t.Errorf("got %s, want verified and basic", answer.Body)
	}
	answer = advisor.Do("PUT", path, documents(document("proof_of_address", "bill 1", "2026-06-30")).With("verified_at", now)).Expect(t, http.StatusOK)
	if answer.JSON(t)["verification_level"] != "standard" {
		t.Errorf("got %s, want standard", answer.Body)
	}
	advisor.Do("PATCH", path+"/status", map[string]any{"verification_level": "enhanced", "reason": "funds documented"}).Expect(t, http.StatusAccepted)
	if got := advisor.Do("GET", path, nil).JSON(t)["verified_at"]; got != "2026-01-31T08:00:00.000Z" {
		t.Errorf("verified_at is %v", got)
	}
}

func TestKYC_AddsDocumentsAndUpdatesTheSameOne(t *testing.T) {
	s := servertest.Start(t)
	owner := s.User(access.Customer)
	path := "/v1/customers/" + newCustomer(owner) + "/kyc"
	owner.Do("PUT", path, passport("ab 12")).Expect(t, http.StatusOK)
	owner.Do("PUT", path, documents(document("identity_card", "ab 12", "2030-01-01"))).Expect(t, http.StatusOK)
	same := document("passport", "AB 12", "2031-01-01")
	same["country"] = "CH"
	owner.Do("PUT", path, documents(same)).Expect(t, http.StatusOK)
	var kyc struct {
		Documents []struct {
			Type       string `json:"type"`
			ExpiryDate string `json:"expiry_date"`
		} `json:"documents"`
	}
	owner.Do("GET", path, nil).Into(t, &kyc)
	if len(kyc.Documents) != 2 || kyc.Documents[0].ExpiryDate != "2031-01-01" {
		t.Errorf("got %+v, want the passport until 2031 and the identity card", kyc.Documents)
	}
}

func TestKYC_RejectsInvalidDocuments(t *testing.T) {
	s := servertest.Start(t)
	owner := s.User(access.Customer)
	path := "/v1/customers/" + newCustomer(owner) + "/kyc"
	for name, c := range map[string]struct {
		body  any
		field string
	}{
		"second invalid":  {documents(document("passport", "1", "2030-01-01"), document("", "", "soon")), "documents.1.type"},
		"blank type":      {documents(document(" \u200b", "1", "2030-01-01")), "documents.0.type"},
		"control in type": {documents(document("gym\u202ecard", "1", "2030-01-01")), "documents.0.type"},
		"long type":       {documents(document(strings.Repeat("é", 51), "1", "2030-01-01")), "documents.0.type"},
		"no alias date":   {documents(map[string]any{"type": "ID card", "number": "1"}), "documents.0.expiry_date"},
		"no expiry date":  {documents(map[string]any{"type": "passport", "number": "1", "country": "CHE"}), "documents.0.expiry_date"},
		"unknown country": {documents(map[string]any{"type": "other", "number": "1", "country": "CHX"}), "documents.0.country"},
		"not a list":      {map[string]any{"documents": "passport"}, "documents"},
		"malformed time":  {map[string]any{"verified_at": "yesterday"}, "verified_at"},
		"too many":        {documents(make([]servertest.Body, 21)...), "documents"},
		"1000":            {documents(make([]servertest.Body, 1000)...), "documents"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := owner.Do("PUT", path, c.body)
			details, _ := answer.JSON(t)["details"].(map[string]any)
			if answer.Status != 400 || details[c.field] == nil {
				t.Errorf("got %d %s, want 400 naming %s", answer.Status, answer.Body, c.field)
			}
		})
	}
	if got := owner.Do("GET", path, nil); !strings.Contains(got.Body, `"documents":[]`) || !strings.Contains(got.Body, `"not_started"`) {
		t.Errorf("a rejected request changed the customer: %s", got.Body)
	}
	owner.Do("PUT", path, documents(document("passport", "1", "2026-01-31"))).Expect(t, http.StatusOK) // valid on its last day
}

type shownDocument struct {
	Type       string `json:"type"`
	ExpiryDate string `json:"expiry_date"`
	Expired    bool   `json:"expired"`
}

type shownKYC struct {
	Status       string `json:"kyc_status"`
	Documents    []shownDocument
	Requirements struct {
		CurrentlyDue []string `json:"currently_due"`
		PastDue      []string `json:"past_due"`
	}
}

func readKYC(t *testing.T, c *servertest.Client, path string) (k shownKYC) {
	t.Helper()
	c.Do("GET", path, nil).Expect(t, http.StatusOK).Into(t, &k)
	return k
}

// Any text is a type. Usual names of the known types count as these; documents are shown as they were given.
func TestKYC_TakesDocumentsOfAnyType(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	for given, want := range map[string]string{
		"passport": "basic", "Passport": "basic", "refugee travel document": "basic", "id_card": "basic", "ID-Card": "basic", "nationalId": "basic",
		"national_identity_card": "basic", "drivers_license": "basic", "Driver's licence": "basic", "driving_license": "basic", "residence_card": "basic",
		"utility_bill": "none", "other": "none", "gym card": "none", "会员卡": "none", "<b>passport</b>": "none", strings.Repeat("é", 50): "none",
	} {
		path := "/v1/customers/" + newCustomer(advisor) + "/kyc"
		advisor.Do("PUT", path, documents(document(given, "N1", "2030-01-01"))).Expect(t, http.StatusOK)
		k := readKYC(t, advisor, path)
		if len(k.Documents) != 1 || k.Documents[0].Type != given || k.Status != "pending" {
			t.Errorf("%s: got %+v", given, k)
		}
		suggested := advisor.Do("GET", path, nil).JSON(t)["suggestion"].(map[string]any)["level"]
		if suggested != want {
			t.Errorf("%s supports the level %v, want %s", given, suggested, want)
		}
	}
	path := "/v1/customers/" + newCustomer(advisor) + "/kyc"
	both := documents(document("national_id", "N1", "2030-01-01"), document("utility_bill", "B1", ""))
	answer := advisor.Do("PUT", path, both.With("verified_at", "2026-01-31T08:00:00Z")).Expect(t, http.StatusOK).JSON(t)
	if answer["verification_level"] != "standard" {
		t.Errorf("got %v, want standard", answer)
	}
}

// The same document is found by what its type means, or by the text of another type; the type given last is shown.
func TestKYC_RecognizesADocumentByItsType(t *testing.T) {
	s := servertest.Start(t)
	owner := s.User(access.Customer)
	path := "/v1/customers/" + newCustomer(owner) + "/kyc"
	for _, given := range []string{"identity_card", "ID card", "other", "Gym card", "gym card", "library card"} {
		owner.Do("PUT", path, documents(document(given, "N 1", "2030-01-01"))).Expect(t, http.StatusOK)
	}
	var given []string
	for _, d := range readKYC(t, owner, path).Documents {
		given = append(given, d.Type)
	}
	if got := strings.Join(given, ", "); got != "ID card, other, gym card, library card" {
		t.Errorf("got %s", got)
	}
}

// A document that has expired is stored, shown as expired, and counts for nothing: neither for a level nor as a submission.
func TestKYC_ExpiredDocumentsCountForNothing(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	id := newCustomer(advisor)
	path := "/v1/customers/" + id + "/kyc"
	late := documents(document("passport", "1", "2026-01-30"), document("proof_of_address", "2", "0001-01-01"),
		document("gym card", "3", "2020-01-01"))
	advisor.Do("PUT", path, late).Expect(t, http.StatusOK)
	k := readKYC(t, advisor, path)
	if len(k.Documents) != 3 || !k.Documents[0].Expired || !k.Documents[1].Expired || k.Status != "not_started" ||
		strings.Join(k.Requirements.CurrentlyDue, " ") != "identity_document" || strings.Join(k.Requirements.PastDue, " ") != "passport proof_of_address" {
		t.Errorf("got %+v", k)
	}
	advisor.Do("PUT", path, late.With("verified_at", "2026-01-31T08:00:00Z")).ExpectError(t, 409, "customers.invalid_kyc_transition")
	for _, status := range []string{"pending", "in_review", "verified"} {
		advisor.Do("PATCH", path+"/status", decide(status)).Expect(t, http.StatusOK)
	}
	advisor.Do("PUT", path, documents(document("id_card", "3", "2020-01-01"))).Expect(t, http.StatusOK)
	expire := func() string {
		t.Helper()
		if err := s.Customers.RunExpiry(context.Background()); err != nil {
			t.Fatal(err)
		}
		return readKYC(t, advisor, path).Status
	}
	if got := expire(); got != "verified" {
		t.Errorf("a customer whom a reviewer has verified in another way became %s by a document that has never counted", got)
	}
	advisor.Do("PUT", path, passport("4")).Expect(t, http.StatusOK)
	advisor.Do("PUT", path, documents(document("passport", "4", "2026-01-30"))).Expect(t, http.StatusOK)
	if got := expire(); got != "expired" {
		t.Errorf("the document of a verification has ended, but the customer is %s", got)
	}
}

func TestKYC_NoDocumentsChangeNothing(t *testing.T) {
	s := servertest.Start(t)
	owner, stranger := s.User(access.Customer), s.User(access.Customer)
	id := newCustomer(owner)
	path := "/v1/customers/" + id + "/kyc"
	before := owner.Do("GET", "/v1/customers/"+id, nil).Expect(t, http.StatusOK)
	for _, body := range []any{`{"documents":[]}`, `{"documents":null}`, `{}`, `{"documents":[],"verified_at":"2026-01-30T10:00:00Z"}`} {
		answer := owner.Do("PUT", path, body).Expect(t, http.StatusOK)
		if answer.Body != before.Body {
			t.Errorf("%s: got %s, want %s", body, answer.Body, before.Body)
		}
		stranger.Do("PUT", path, body).ExpectError(t, 403, "common.rbac_no_rec_access")
		owner.Do("PUT", "/v1/customers/"+store.NewID()+"/kyc", body).ExpectError(t, 404, "customers.customer_not_found")
		owner.With("If-Match", `"0"`).Do("PUT", path, body).Expect(t, http.StatusPreconditionFailed)
	}
	if after := owner.Do("GET", "/v1/customers/"+id, nil); after.Body != before.Body || after.Header.Get("ETag") != before.Header.Get("ETag") {
		t.Errorf("got %s, want %s", after.Body, before.Body)
	}
}

func TestKYC_EncryptsNumbersAndMasksThem(t *testing.T) {
	s := servertest.Start(t)
	owner, reader := s.User(access.Customer), s.User(access.Customer)
	id := newCustomer(owner)
	owner.Do("PUT", "/v1/customers/"+id+"/kyc", passport("GEHEIM-4711")).Expect(t, http.StatusOK)
	s.Admin().Do("POST", "/v1/rbac/grants", map[string]any{"user_id": reader.UserID, "rec_type": "customers", "permissions": []string{"read"}, "rec_id": id}).
		Expect(t, http.StatusCreated)
	if got := reader.Do("GET", "/v1/customers/"+id+"/kyc", nil).Expect(t, http.StatusOK); strings.Contains(got.Body, "GEHEIM") || !strings.Contains(got.Body, "********711") {
		t.Errorf("a reader sees %s", got.Body)
	}
	var stored string
	if err := s.DB.QueryRow(context.Background(), "SELECT number_sealed || number_key FROM kyc_documents").Scan(&stored); err != nil || strings.Contains(stored, "GEHEIM") {
		t.Errorf("stored as %q: %v", stored, err)
	}
}

func TestDecide_RejectsInvalidDecisions(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	path := "/v1/customers/" + newCustomer(advisor) + "/kyc/status"
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "an empty decision", As: advisor, Method: "PATCH", Path: path, Body: map[string]any{}, Status: 400, Contains: []string{`"kyc_status"`}},
		{Name: "an unknown state", As: advisor, Method: "PATCH", Path: path, Body: decide("perfect"), Status: 400, Contains: []string{`"kyc_status"`}},
		{Name: "the same state", As: advisor, Method: "PATCH", Path: path, Body: decide("not_started"), Status: 409, Contains: []string{`"allowed":["pending"]`}},
		{Name: "a level without verification", As: advisor, Method: "PATCH", Path: path, Body: map[string]any{"verification_level": "basic"}, Status: 409},
		{Name: "an unknown level", As: advisor, Method: "PATCH", Path: path, Body: map[string]any{"verification_level": "gold"}, Status: 400},
	})
}

func TestDecide_RejectsAReviewerWhoIsTheCustomer(t *testing.T) {
	s := servertest.Start(t)
	body := ada().With("email", "ADMIN@kontor.localhost")
	id := s.User(access.Advisor).Create("/v1/customers", body)
	path := "/v1/customers/" + id + "/kyc/status"
	if answer := s.Admin().Do("PATCH", path, decide("pending")); answer.Status != 403 || !strings.Contains(answer.Body, "customers.self_verification") {
		t.Errorf("got %d %s, want 403", answer.Status, answer.Body)
	}
	s.User(access.Advisor).Do("PATCH", path, decide("pending")).Expect(t, http.StatusOK)
}

func TestDecide_RejectsAReviewerWhoWasTheCustomer(t *testing.T) {
	s := servertest.Start(t)
	person := func(first string) map[string]any {
		return map[string]any{"first_name": first, "last_name": "Lovelace", "date_of_birth": "1990-12-10"}
	}
	customer := ada().With("date_of_birth", "1990-12-10", "last_name", "Lovelace")
	decided := func(reviewer *servertest.Client, customer servertest.Body) servertest.Response {
		id := s.User(access.Advisor).Create("/v1/customers", customer)
		return reviewer.Do("PATCH", "/v1/customers/"+id+"/kyc/status", decide("pending"))
	}
	persona := func(of *servertest.Client) string {
		path := "/v1/personas/" + s.Admin().Do("POST", "/v1/personas", person(ada()["first_name"].(string))).Expect(t, http.StatusCreated).JSON(t)["id"].(string)
		s.Admin().Do("POST", path+"/users", map[string]any{"user_id": of.UserID}).Expect(t, http.StatusCreated)
		return path
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, self *servertest.Client, persona string) // of the reviewer's persona
		want   int
	}{
		"linked": {func(*testing.T, *servertest.Client, string) {}, 403},
		"unlinked by themselves": {func(t *testing.T, self *servertest.Client, persona string) {
			self.Do("DELETE", persona+"/users/"+self.UserID, nil).ExpectError(t, 403, "personas.own_persona")
		}, 403},
		"renamed by themselves": {func(t *testing.T, self *servertest.Client, persona string) {
			self.Do("PUT", persona, person("Eve")).ExpectError(t, 403, "personas.own_persona")
		}, 403},
		"unlinked by an administrator": {func(t *testing.T, self *servertest.Client, persona string) {
			s.Admin().Do("DELETE", persona+"/users/"+self.UserID, nil).Expect(t, 200)
		}, 200},
		"renamed by an administrator": {func(t *testing.T, _ *servertest.Client, persona string) {
			s.Admin().Do("PUT", persona, person("Eve")).Expect(t, 200)
		}, 403},
		"unlinked by another advisor": {func(t *testing.T, self *servertest.Client, persona string) {
			s.User(access.Advisor).Do("DELETE", persona+"/users/"+self.UserID, nil).Expect(t, 200)
		}, 403},
	} {
		t.Run(name, func(t *testing.T) {
			self := s.User(access.Advisor)
			c.change(t, self, persona(self))
			for birth, customer := range map[string]servertest.Body{"known": customer, "unknown": customer.With("date_of_birth", nil)} {
				if answer := decided(self, customer); answer.Status != c.want {
					t.Errorf("date of birth %s: got %d %s, want %d", birth, answer.Status, answer.Body, c.want)
				}
			}
			decided(self, customer.With("date_of_birth", "1990-12-11")).Expect(t, 200) // another person with the same name
		})
	}
}

func TestRunExpiry_ExpiresWithTheLastIdentityDocument(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	path := "/v1/customers/" + newCustomer(advisor)
	body := documents(document("passport", "1", "2026-02-10"), document("identity_card", "2", "2026-02-20"), document("proof_of_address", "3", "2031-01-01"))
	advisor.Do("PUT", path+"/kyc", body.With("verified_at", "2026-01-31T08:00:00Z")).Expect(t, http.StatusOK)
	status := func() any {
		t.Helper()
		if err := s.Customers.RunExpiry(context.Background()); err != nil {
			t.Fatal(err)
		}
		return s.SignIn(servertest.AdminEmail, servertest.AdminPassword).Do("GET", path, nil).Expect(t, http.StatusOK).JSON(t)["kyc_status"]
	}
	for _, step := range []struct {
		day  time.Time
		want string
	}{
		{time.Date(2026, 2, 15, 12, 0, 0, 0, time.UTC), "verified"},
		{time.Date(2026, 2, 20, 23, 59, 59, 0, time.UTC), "verified"},
		{time.Date(2026, 2, 21, 0, 0, 0, 0, time.UTC), "expired"},
		{time.Date(2026, 2, 22, 0, 0, 0, 0, time.UTC), "expired"},
	} {
		s.Clock.Set(step.day)
		if got := status(); got != step.want {
			t.Errorf("on %s the state is %v, want %s", step.day.Format(time.DateOnly), got, step.want)
		}
	}
	trail := s.SignIn(servertest.AdminEmail, servertest.AdminPassword).Do("GET", "/v1/audit?search.action=customers.kyc_expire", nil)
	if !strings.Contains(trail.Body, `"actor":"`+store.NilID+`"`) {
		t.Errorf("the actor in the audit trail is not the service itself: %s", trail.Body)
	}
}
