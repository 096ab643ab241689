package customers_test

import (
	"net/http"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

// verified creates a customer that an advisor has verified, and returns its path.
func verified(t *testing.T, owner, advisor *servertest.Client, data servertest.Body) string {
	t.Helper()
	path := "/v1/customers/" + owner.Create("/v1/customers", data)
	advisor.Do("PUT", path+"/kyc", passport("P-1").With("verified_at", "2026-01-31T08:00:00Z")).Expect(t, http.StatusOK)
	return path
}

// person returns a customer with all members that a reviewer verifies.
func person() servertest.Body {
	return ada().With("date_of_birth", "1990-02-28", "nationality", "CHE")
}

func TestUpdate_ReturnsAChangedIdentityToReview(t *testing.T) {
	s := servertest.Start(t)
	owner, advisor := s.User(access.Customer), s.User(access.Advisor)
	for name, c := range map[string]struct {
		change map[string]any
		review bool
	}{
		"another first name":       {map[string]any{"first_name": "Eve"}, true},
		"another last name":        {map[string]any{"last_name": "Lovelace"}, true},
		"an accent":                {map[string]any{"first_name": "Adà"}, true},
		"a name moved":             {map[string]any{"first_name": "Ada M.", "last_name": "uster"}, true},
		"another birth":            {map[string]any{"date_of_birth": "1990-02-27"}, true},
		"no birth":                 {map[string]any{"date_of_birth": nil}, true},
		"another nationality":      {map[string]any{"nationality": "DEU"}, true},
		"no nationality":           {map[string]any{"nationality": ""}, true},
		"another type":             {map[string]any{"type": "business"}, true},
		"a Cyrillic letter":        {map[string]any{"first_name": "Аda"}, true},
		"capitals only":            {map[string]any{"first_name": "ADA"}, false},
		"white space only":         {map[string]any{"last_name": " Muster "}, false},
		"an address":               {map[string]any{"address": map[string]any{"city": "Bern", "country": "CH"}}, false},
		"a phone":                  {map[string]any{"phone": "+41446681800"}, false},
		"the same names once more": {map[string]any{"first_name": "Ada", "last_name": "Muster", "nationality": "CHE"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			path := verified(t, owner, advisor, person())
			got := owner.Do("PUT", path, c.change).Expect(t, http.StatusOK).JSON(t)
			wantStatus, wantLevel := "verified", "basic"
			if c.review {
				wantStatus, wantLevel = "in_review", "none"
			}
			if got["kyc_status"] != wantStatus || got["verification_level"] != wantLevel {
				t.Errorf("got %v at level %v, want %s at level %s", got["kyc_status"], got["verification_level"], wantStatus, wantLevel)
			}
			kyc := advisor.Do("GET", path+"/kyc", nil).Expect(t, http.StatusOK)
			if reopened := strings.Contains(kyc.Body, `"from":"verified","to":"in_review"`); reopened != c.review {
				t.Errorf("review in the history: %v, want %v: %s", reopened, c.review, kyc.Body)
			}
			if (kyc.JSON(t)["verified_at"] == nil) != c.review {
				t.Errorf("verified_at is %v", kyc.JSON(t)["verified_at"])
			}
		})
	}
}

func TestUpdate_KeepsOldAndNewValuesForReviewers(t *testing.T) {
	s := servertest.Start(t)
	owner, advisor := s.User(access.Customer), s.User(access.Advisor)
	path := verified(t, owner, advisor, person())
	owner.Do("PUT", path, map[string]any{"last_name": "Geheimname", "date_of_birth": nil}).Expect(t, http.StatusOK)
	owner.Do("PUT", path, map[string]any{"last_name": "Drittname"}).Expect(t, http.StatusOK) // stays in review
	got := advisor.Do("GET", path+"/kyc", nil).Expect(t, http.StatusOK)
	for _, want := range []string{
		`"from":"verified","to":"in_review"`,
		`"changes":[{"field":"last_name","from":"Muster","to":"Geheimname"},{"field":"date_of_birth","from":"1990-02-28","to":""}]`,
		`"from":"in_review","to":"in_review"`, `"changes":[{"field":"last_name","from":"Geheimname","to":"Drittname"}]`,
	} {
		if !strings.Contains(got.Body, want) {
			t.Errorf("%s lacks %s", got.Body, want)
		}
	}
	if got := owner.Do("GET", path+"/kyc", nil).Expect(t, http.StatusOK); strings.Contains(got.Body, "Geheimname") {
		t.Errorf("a caller who is no reviewer sees %s", got.Body)
	}
	var stored string
	if err := s.DB.QueryRow(t.Context(), `SELECT string_agg(changes_sealed, ' ') FROM kyc_changes`).Scan(&stored); err != nil {
		t.Fatal(err)
	}
	if stored == "" || strings.Contains(stored, "Geheimname") {
		t.Errorf("stored changes are %q, want encrypted values", stored)
	}
	trail := s.Admin().Do("GET", "/v1/audit?search.action=customers.kyc_reopen", nil).Expect(t, http.StatusOK)
	if trail.JSON(t)["total"] != 1.0 || !strings.Contains(trail.Body, owner.UserID) {
		t.Errorf("the audit trail has %s, want one entry that names the owner", trail.Body)
	}
	inbox := owner.Do("GET", "/v1/notifications?search.event=customer_status_changed", nil).Expect(t, http.StatusOK)
	if inbox.JSON(t)["total"] != 1.0 { // verified; the way back is the owner's own doing
		t.Errorf("notifications of the owner: %s, want 1", inbox.Body)
	}
}

// Each audit entry of a customer begins with the state that the previous entry left.
func TestUpdate_LeavesAnUnbrokenAuditTrail(t *testing.T) {
	s := servertest.Start(t)
	owner, advisor := s.User(access.Customer), s.User(access.Advisor)
	path := verified(t, owner, advisor, person())
	owner.Do("PUT", path, map[string]any{"last_name": "Neu"}).Expect(t, http.StatusOK)
	advisor.Do("PATCH", path+"/kyc/status", decide("rejected")).Expect(t, http.StatusOK)
	var trail struct {
		Data []struct {
			Action string `json:"action"`
			Before string `json:"before_hash"`
			After  string `json:"after_hash"`
		} `json:"data"`
	}
	s.Admin().Do("GET", "/v1/audit?sort=seq&search.rec_id="+path[len("/v1/customers/"):], nil).Expect(t, http.StatusOK).Into(t, &trail)
	if len(trail.Data) != 5 {
		t.Fatalf("got %d entries, want 5: %+v", len(trail.Data), trail.Data)
	}
	for i := 1; i < len(trail.Data); i++ {
		if trail.Data[i].Before != trail.Data[i-1].After {
			t.Errorf("%s does not begin with the state that %s left", trail.Data[i].Action, trail.Data[i-1].Action)
		}
	}
}

func TestHistory_KeepsDecisionsDespiteManyRenames(t *testing.T) {
	s := servertest.Start(t)
	owner, advisor := s.User(access.Customer), s.User(access.Advisor)
	path := verified(t, owner, advisor, person())
	for i := range 120 {
		owner.Do("PUT", path, map[string]any{"first_name": "Ada " + strings.Repeat("i", i%50+1)}).Expect(t, http.StatusOK)
	}
	if got := advisor.Do("GET", path+"/kyc", nil).Expect(t, http.StatusOK); !strings.Contains(got.Body, `"to":"verified"`) {
		t.Error("the history lacks the decision after 120 changes of the name")
	}
}

// A reviewer who has decided about a customer cannot become that customer afterwards.
func TestUpdate_RejectsAReviewerWhoTakesOverTheCustomer(t *testing.T) {
	s := servertest.Start(t)
	owner, advisor, other := s.User(access.Customer), s.User(access.Advisor), s.User(access.Advisor)
	self := map[string]any{"first_name": "Grace", "last_name": "Hopper", "date_of_birth": "1906-12-09"}
	persona := s.Admin().Create("/v1/personas", self)
	s.Admin().Do("POST", "/v1/personas/"+persona+"/users", map[string]any{"user_id": advisor.UserID}).Expect(t, http.StatusCreated)
	path := verified(t, owner, advisor, person())
	for name, change := range map[string]map[string]any{
		"names and birth":  self,
		"names only":       {"first_name": "GRACE", "last_name": "Höpper", "date_of_birth": nil},
		"names swapped":    {"first_name": "Hopper", "last_name": "Grace", "date_of_birth": "1906-12-09"},
		"their own e-mail": {"email": email(t, advisor)},
	} {
		got := advisor.Do("PUT", path, change)
		if got.Status != http.StatusForbidden || got.JSON(t)["code"] != "customers.self_verification" {
			t.Errorf("%s: got %d %s, want 403", name, got.Status, got.Body)
		}
	}
	other.Do("PUT", path, self).Expect(t, http.StatusOK)
	if got := other.Do("GET", path, nil).JSON(t); got["kyc_status"] != "in_review" {
		t.Errorf("after another reviewer's rename the state is %v, want in_review", got["kyc_status"])
	}
	advisor.Do("PATCH", path+"/kyc/status", decide("verified")).Expect(t, http.StatusForbidden)
}

// Former identities of a customer count: after a rename its former self still may not review it.
func TestDecide_ComparesFormerIdentitiesOfTheCustomer(t *testing.T) {
	s := servertest.Start(t)
	owner, advisor := s.User(access.Advisor), s.User(access.Advisor) // what the bank records is proven
	self := servertest.Body{"first_name": "Grace", "last_name": "Hopper", "date_of_birth": "1906-12-09"}
	persona := s.Admin().Create("/v1/personas", self)
	s.Admin().Do("POST", "/v1/personas/"+persona+"/users", map[string]any{"user_id": advisor.UserID}).Expect(t, http.StatusCreated)
	path := "/v1/customers/" + owner.Create("/v1/customers", self.With("email", "grace@example.ch"))
	owner.Do("PUT", path, map[string]any{"first_name": "John", "last_name": "Doe"}).Expect(t, http.StatusOK)
	for name, answer := range map[string]servertest.Response{
		"by decision":    advisor.Do("PATCH", path+"/kyc/status", decide("pending")),
		"by verified_at": advisor.Do("PUT", path+"/kyc", passport("P").With("verified_at", "2026-01-31T08:00:00Z")),
	} {
		if answer.Status != http.StatusForbidden || answer.JSON(t)["code"] != "customers.self_verification" {
			t.Errorf("%s: got %d %s, want 403", name, answer.Status, answer.Body)
		}
	}
	s.User(access.Advisor).Do("PATCH", path+"/kyc/status", decide("pending")).Expect(t, http.StatusOK)
}

// A customer cannot exclude a reviewer by linking a persona with the customer's name to them.
func TestDecide_IgnoresPendingPersonas(t *testing.T) {
	s := servertest.Start(t)
	owner, advisor := s.User(access.Customer), s.User(access.Advisor)
	path := "/v1/customers/" + owner.Create("/v1/customers", person())
	persona := owner.Create("/v1/personas", map[string]any{"first_name": "Ada", "last_name": "Muster", "date_of_birth": "1990-02-28"})
	owner.Do("POST", "/v1/personas/"+persona+"/users", map[string]any{"user_id": advisor.UserID}).Expect(t, http.StatusCreated)
	advisor.Do("PATCH", path+"/kyc/status", decide("pending")).Expect(t, http.StatusOK)

	// Nor by renaming a persona that the reviewer accepted under another name, before or after the acceptance.
	renamed := owner.Create("/v1/personas", map[string]any{"first_name": "Ada", "last_name": "Muster", "date_of_birth": "1990-02-28"})
	harmless := map[string]any{"first_name": "Team", "last_name": "Seefeld", "date_of_birth": "1990-02-28"}
	owner.Do("PUT", "/v1/personas/"+renamed, harmless).Expect(t, http.StatusOK)
	s.Clock.Advance(1e9)
	owner.Do("POST", "/v1/personas/"+renamed+"/users", map[string]any{"user_id": advisor.UserID}).Expect(t, http.StatusCreated)
	advisor.Do("POST", "/v1/personas/"+renamed+"/users/"+advisor.UserID+"/accept", nil).Expect(t, http.StatusOK)
	advisor.Do("PATCH", path+"/kyc/status", decide("in_review")).Expect(t, http.StatusOK)
	owner.Do("PUT", "/v1/personas/"+renamed, map[string]any{"first_name": "Ada", "last_name": "Muster", "date_of_birth": "1990-02-28"}).Expect(t, http.StatusOK)
	advisor.Do("PATCH", path+"/kyc/status", decide("verified")).Expect(t, http.StatusOK)
}

// email returns the e-mail address with which a user signs in.
func email(t *testing.T, c *servertest.Client) string {
	t.Helper()
	var page struct {
		Data []struct{ Value string } `json:"data"`
	}
	c.Do("GET", "/v1/users/"+c.UserID+"/credentials", nil).Expect(t, http.StatusOK).Into(t, &page)
	return page.Data[0].Value
}
