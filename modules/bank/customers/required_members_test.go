package customers_test

import (
	"net/http"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

var (
	known        = servertest.Body{"first_name": "Ida", "last_name": "Known", "email": "ida@example.ch", "date_of_birth": "1980-02-29", "nationality": "CHE"}
	knownAddress = servertest.Body{"street": "Seestrasse 1", "postal_code": "8002", "city": "Zürich", "country": "CHE"}
)

// A person is verified with a date of birth and a nationality, and from the level standard on with an address, whichever way leads to
// the verification.
func TestVerification_NeedsTheMembersOfItsLevel(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	without := func(names ...string) servertest.Body {
		body := known.With("address", knownAddress)
		for _, name := range names {
			delete(body, name)
		}
		return body
	}
	cases := []struct {
		name    string
		body    servertest.Body
		level   string
		missing string
	}{
		{"nothing but a name", without("date_of_birth", "nationality", "address"), "enhanced", `["date_of_birth","nationality","address"]`},
		{"no date of birth", without("date_of_birth"), "basic", `["date_of_birth"]`},
		{"no nationality", without("nationality"), "basic", `["nationality"]`},
		{"no address, basic", without("address"), "basic", ""},
		{"no address, standard", without("address"), "standard", `["address"]`},
		{"everything", without(), "standard", ""},
		{"a business without an address, basic", servertest.Body{"type": "business", "last_name": "Works Ltd", "email": "works@example.ch"}, "basic", ""},
		{"a business without an address, standard", servertest.Body{"type": "business", "last_name": "Works Ltd", "email": "works@example.ch"}, "standard", `["address"]`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := "/v1/customers/" + advisor.Create("/v1/customers", c.body) + "/kyc"
			advisor.Do("PUT", path, passport("P"+s.Clock.Now().String())).Expect(t, http.StatusOK)
			advisor.Do("PATCH", path+"/status", decide("in_review")).Expect(t, http.StatusOK)
			answer := advisor.Do("PATCH", path+"/status", decide("verified").With("verification_level", c.level, "reason", "seen in person"))
			if c.missing == "" {
				answer.Expect(t, http.StatusOK)
				return
			}
			answer.ExpectError(t, http.StatusConflict, "customers.members_missing")
			if !strings.Contains(answer.Body, `"missing":`+c.missing) {
				t.Errorf("got %s, want the missing %s", answer.Body, c.missing)
			}
			if got := advisor.Do("GET", path, nil).JSON(t)["kyc_status"]; got != "in_review" {
				t.Errorf("the customer is %v, want in_review", got)
			}
		})
	}
}

// The grounds of the suggestion name the members, a verification without a level takes the highest one for which all are known, and
// what was removed since a proposal prevents its confirmation.
func TestVerification_ShowsTheMembersInItsGrounds(t *testing.T) {
	s := servertest.Start(t)
	advisor, second := s.User(access.Advisor), s.User(access.Advisor)
	id := advisor.Create("/v1/customers", known)
	path := "/v1/customers/" + id + "/kyc"
	body := documents(document("passport", "P1", "2030-01-01"), document("proof_of_address", "B1", "2030-01-01"))
	advisor.Do("PUT", path, body).Expect(t, http.StatusOK)
	got := advisor.Do("GET", path, nil).Expect(t, http.StatusOK).Body
	for _, part := range []string{`"suggestion":{"level":"basic"`, `{"requirement":"date_of_birth","for":"basic","met":true,"documents":[]}`,
		`{"requirement":"address","for":"standard","met":false,"documents":[]}`} {
		if !strings.Contains(got, part) {
			t.Errorf("%s is missing in %s", part, got)
		}
	}
	advisor.Do("PATCH", path+"/status", decide("in_review")).Expect(t, http.StatusOK)
	if level := advisor.Do("PATCH", path+"/status", decide("verified")).Expect(t, http.StatusOK).JSON(t)["verification_level"]; level != "basic" {
		t.Errorf("the level is %v, want basic", level)
	}
	advisor.Do("PUT", "/v1/customers/"+id, known.With("address", knownAddress)).Expect(t, http.StatusOK)
	proposed := advisor.Do("PATCH", path+"/status", servertest.Body{"verification_level": "enhanced", "reason": "funds documented"}).Expect(t, http.StatusAccepted)
	decision := proposed.JSON(t)["pending_decision"].(map[string]any)["id"].(string)
	advisor.Do("PUT", "/v1/customers/"+id, servertest.Body{"address": nil}).Expect(t, http.StatusOK)
	second.Do("POST", path+"/decisions/"+decision+"/confirm", nil).ExpectError(t, http.StatusConflict, "customers.members_missing")
}

// A case is ready once each valid document has a scan; deleting the scan ends that. The entity tag follows the files.
func TestCases_AreReadyWithTheirScans(t *testing.T) {
	s := servertest.Start(t)
	owner, advisor := s.User(access.Customer), s.User(access.Advisor)
	id := owner.Create("/v1/customers", known)
	path := "/v1/customers/" + id + "/kyc"
	owner.Do("PUT", path, passport("P1")).Expect(t, http.StatusOK)
	ready := func() float64 {
		t.Helper()
		return advisor.Do("GET", "/v1/kyc/cases?search.ready=true", nil).Expect(t, http.StatusOK).JSON(t)["total"].(float64)
	}
	kyc := owner.Do("GET", path, nil).Expect(t, http.StatusOK)
	document := kyc.JSON(t)["documents"].([]any)[0].(map[string]any)
	missing := kyc.JSON(t)["requirements"].(map[string]any)["missing_scans"].([]any)
	if len(missing) != 1 || missing[0] != document["id"] || ready() != 0 {
		t.Errorf("without a scan the document is %v, %v are missing, %v cases are ready", document, missing, ready())
	}
	file := owner.With("Content-Type", "application/pdf", "Content-Disposition", `attachment; filename="passport.pdf"`).
		Do("POST", path+"/documents/"+document["id"].(string)+"/files", "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n").
		Expect(t, http.StatusCreated).JSON(t)["id"].(string)
	after := owner.Do("GET", path, nil).Expect(t, http.StatusOK)
	if after.Header.Get("ETag") == kyc.Header.Get("ETag") {
		t.Error("the entity tag does not follow the files")
	}
	if n := len(after.JSON(t)["requirements"].(map[string]any)["missing_scans"].([]any)); n != 0 || ready() != 1 {
		t.Errorf("with a scan %v are missing and %v cases are ready, want 0 and 1", n, ready())
	}
	owner.Do("DELETE", "/v1/files/"+file, nil).Expect(t, http.StatusOK)
	if ready() != 0 {
		t.Error("a case whose scan was deleted is ready")
	}
}
