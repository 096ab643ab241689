package customers_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

// Each attack lifts an exclusion before the excluded person confirms. An unrelated reviewer still confirms.
func TestFourEyes_EndedRelationsStillExclude(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin()
	persona := func(of *servertest.Client, first, last, born string) string {
		id := admin.Create("/v1/personas", map[string]any{"first_name": first, "last_name": last, "date_of_birth": born})
		admin.Do("POST", "/v1/personas/"+id+"/users", map[string]any{"user_id": of.UserID}).Expect(t, http.StatusCreated)
		return "/v1/personas/" + id
	}
	// outsider owns the persona of a relative: no reviewer, so that nothing keeps them from ending a link.
	link := func(from, to string) string {
		id := admin.Create(from+"/links", map[string]any{"linked_persona_id": strings.TrimPrefix(to, "/v1/personas/"), "relation": "spouse"})
		return "/links/" + id
	}
	const refused, self = "customers.second_person_required", "customers.self_verification"
	for name, c := range map[string]struct {
		// before runs before the proposal, after it after.
		before func(t *testing.T, customer string, owner, first, second *servertest.Client) (after func())
		code   string
	}{
		"the spouse of the proposer deletes the link": {func(t *testing.T, _ string, _, first, second *servertest.Client) func() {
			one, two := persona(first, "Urs", "Frei", "1980-01-01"), persona(second, "Eva", "Frei", "1981-01-01")
			l := link(one, two)
			return func() {
				second.Do("DELETE", two+l, nil).ExpectError(t, 403, "personas.own_persona")
				second.Do("DELETE", one+l, nil).ExpectError(t, 403, "personas.own_persona")
				s.User(access.Advisor).Do("DELETE", two+l, nil).Expect(t, 200)
			}
		}, refused},
		"the link was deleted before the proposal": {func(t *testing.T, _ string, _, first, second *servertest.Client) func() {
			one, two := persona(first, "Jon", "Kern", "1980-01-01"), persona(second, "Lia", "Kern", "1981-01-01")
			s.User(access.Advisor).Do("DELETE", one+link(one, two), nil).Expect(t, 200)
			return func() {}
		}, refused},
		"an administrator deleted the link before the proposal": {func(t *testing.T, _ string, _, first, second *servertest.Client) func() {
			one, two := persona(first, "Udo", "Lang", "1980-01-01"), persona(second, "Isa", "Lang", "1981-01-01")
			admin.Do("DELETE", one+link(one, two), nil).Expect(t, 200)
			return func() {}
		}, refused},
		"an administrator corrects the link after the proposal": {func(t *testing.T, _ string, _, first, second *servertest.Client) func() {
			one, two := persona(first, "Kai", "Lang", "1980-01-01"), persona(second, "Ida", "Lang", "1981-01-01")
			l := link(one, two)
			return func() { admin.Do("DELETE", one+l, nil).Expect(t, 200) }
		}, refused},
		"the second account renames its persona": {func(t *testing.T, _ string, _, first, second *servertest.Client) func() {
			persona(first, "Leo", "Ott", "1980-01-01")
			two := persona(second, "Leo", "Ott", "1980-01-01")
			return func() {
				other := map[string]any{"first_name": "Max", "last_name": "Neu", "date_of_birth": "1970-01-01"}
				second.Do("PUT", two, other).ExpectError(t, 403, "personas.own_persona")
				s.User(access.Advisor).Do("PUT", two, other).Expect(t, 200)
			}
		}, refused},
		"the second account gave up its persona": {func(t *testing.T, _ string, _, first, second *servertest.Client) func() {
			persona(first, "Nora", "Ott", "1980-01-01")
			two := persona(second, "Nora", "Ott", "1980-01-01")
			second.Do("DELETE", two+"/users/"+second.UserID, nil).ExpectError(t, 403, "personas.own_persona")
			s.User(access.Advisor).Do("DELETE", two+"/users/"+second.UserID, nil).Expect(t, 200)
			return func() {}
		}, refused},
		"the spouse, an administrator, erases the persona of the proposer": {func(t *testing.T, _ string, _, first, second *servertest.Client) func() {
			admin.Do("PUT", "/v1/users/"+second.UserID+"/roles", map[string]any{"roles": []string{access.Administrator}}).Expect(t, 200)
			one, two := persona(first, "Rea", "Hofer", "1980-01-01"), persona(second, "Tim", "Hofer", "1981-01-01")
			link(one, two)
			erasure := map[string]any{"reason": "request"}
			second.Do("POST", one+"/erasure", erasure).ExpectError(t, 403, "personas.own_persona")
			second.Do("POST", two+"/erasure", erasure).ExpectError(t, 403, "personas.own_persona")
			unrelated := admin.Create("/v1/personas", map[string]any{"first_name": "Ria", "last_name": "Frey", "date_of_birth": "1980-01-01"})
			second.Erase("/v1/personas/" + unrelated)
			return func() {}
		}, refused},
		"the proposer renames a persona of the same person without a user": {func(t *testing.T, _ string, _, first, second *servertest.Client) func() {
			persona(first, "Ugo", "Meier", "1980-01-01")
			same := "/v1/personas/" + admin.Create("/v1/personas", map[string]any{"first_name": "Ugo", "last_name": "Meier", "date_of_birth": "1980-01-01"})
			l := link(same, persona(second, "Pia", "Meier", "1981-01-01"))
			other := map[string]any{"first_name": "Max", "last_name": "Neuer", "date_of_birth": "1970-01-01"}
			first.Do("PUT", same, other).ExpectError(t, 403, "personas.own_persona")
			first.Do("DELETE", same+l, nil).ExpectError(t, 403, "personas.own_persona")
			second.Do("PUT", same, other).Expect(t, 200) // the spouse is not that person, but the former name counts
			first.Do("DELETE", same+l, nil).ExpectError(t, 403, "personas.own_persona")
			return func() {}
		}, refused},
		"without a persona, the display name was changed": {func(t *testing.T, _ string, _, first, second *servertest.Client) func() {
			persona(first, "Ruth", "Amsler", "1980-01-01")
			second.Named(t, "Ruth Amsler")
			second.Named(t, "Somebody Else")
			return func() {}
		}, refused},
		"the customer's e-mail was the reviewer's": {func(t *testing.T, customer string, owner, _, second *servertest.Client) func() {
			admin.Do("PUT", customer, map[string]any{"email": email(t, second)}).Expect(t, 200)
			owner.Do("PUT", customer, map[string]any{"email": "other@example.ch"}).Expect(t, 200)
			return func() {}
		}, self},
		"the customer's phone was the reviewer's": {func(t *testing.T, customer string, owner, _, second *servertest.Client) func() {
			path := "/v1/users/" + second.UserID + "/credentials"
			id := admin.Create(path, map[string]any{"credential_type": "phone", "credential_value": "+41791112233"})
			var sms struct{ Data []struct{ Text string } }
			admin.Do("GET", "/v1/notifications/deliveries?search.to=%2B41791112233", nil).Expect(t, 200).Into(t, &sms)
			second.Do("PUT", path+"/"+id+"/validate", map[string]any{"otp": regexp.MustCompile(`\b\d{6}\b`).FindString(sms.Data[0].Text), "password": servertest.Password}).Expect(t, 200)
			admin.Do("PUT", customer, map[string]any{"phone": "+41791112233"}).Expect(t, 200)
			owner.Do("PUT", customer, map[string]any{"phone": "+41791112244"}).Expect(t, 200)
			return func() {}
		}, self},
		"the customer's name was the reviewer's display name": {func(t *testing.T, customer string, owner, _, second *servertest.Client) func() {
			second.Named(t, "Gerda Amrein")
			admin.Do("PUT", customer, map[string]any{"first_name": "Gerda", "last_name": "Amrein"}).Expect(t, 200)
			second.Named(t, "Hanna Keller")
			return func() {}
		}, self},
	} {
		t.Run(name, func(t *testing.T) {
			owner, first, second, third := s.User(access.Customer), s.User(access.Advisor), s.User(access.Advisor), s.User(access.Advisor)
			customer := "/v1/customers/" + owner.Create("/v1/customers", person().With("email", strings.ReplaceAll(owner.UserID, "-", "")+"@example.ch"))
			path := customer + "/kyc"
			owner.Do("PUT", path, documents(document("passport", "P-1", "2030-01-01"))).Expect(t, http.StatusOK)
			after := c.before(t, customer, owner, first, second)
			first.Do("PATCH", path+"/status", decide("in_review")).Expect(t, http.StatusOK)
			decision := proposed(t, path, first)
			after()
			second.Do("POST", decision+"/confirm", nil).ExpectError(t, http.StatusForbidden, c.code)
			second.Do("POST", decision+"/reject", map[string]any{"reason": "no"}).ExpectError(t, http.StatusForbidden, c.code)
			if got := second.Do("GET", path, nil).Expect(t, 200).JSON(t); (got["pending_decision"] == nil) != (c.code == self) {
				t.Errorf("the excluded reviewer reads %v", got["pending_decision"])
			}
			if got := cases(t, second, "&search.customer_id="+strings.TrimPrefix(customer, "/v1/customers/")); (got.Total == 0) != (c.code == self) {
				t.Errorf("the excluded reviewer has %d cases", got.Total)
			}
			third.Do("POST", decision+"/confirm", nil).Expect(t, http.StatusOK)
		})
	}
}

// seen is what a customer and its owner can observe.
func seen(t *testing.T, owner *servertest.Client, customer string) string {
	t.Helper()
	var all strings.Builder
	for _, path := range []string{customer, customer + "/kyc", "/v1/customers", "/v1/notifications", "/v1/events", customer + "/tasks", "/v1/search?q=Muster"} {
		got := owner.Do("GET", path, nil)
		all.WriteString(path + " " + got.Header.Get("ETag") + " " + got.Body + "\n")
	}
	return all.String()
}

// Nothing that a customer can read or try differs while a decision about them waits, nor when it ends without effect.
func TestFourEyes_APendingDecisionDoesNotShow(t *testing.T) {
	s := servertest.Start(t, fourEyes("always"))
	owner, first, second := s.User(access.Customer), s.User(access.Advisor), s.User(access.Advisor)
	path := inReview(t, owner, first)
	customer := strings.TrimSuffix(path, "/kyc")
	tag := owner.Do("GET", path, nil).Header.Get("ETag")
	before := seen(t, owner, customer)
	unchanged := func(when string) {
		t.Helper()
		if now := seen(t, owner, customer); now != before {
			t.Errorf("%s: the owner reads\n%s\nbefore it was\n%s", when, now, before)
		}
		if got := owner.With("If-None-Match", tag).Do("GET", path, nil); got.Status != http.StatusNotModified {
			t.Errorf("%s: If-None-Match is answered with %d", when, got.Status)
		}
		if got := owner.With("If-Match", tag).Do("PUT", customer, map[string]any{"first_name": " "}); got.Status != http.StatusBadRequest {
			t.Errorf("%s: If-Match is answered with %d", when, got.Status)
		}
	}
	reviewers := second.Do("GET", path, nil).Header.Get("ETag")
	rejection := decide("rejected").With("reason", "PEP hit, report filed")
	propose := func() string {
		s.Clock.Advance(1e9)
		got := first.Do("PATCH", path+"/status", rejection).Expect(t, http.StatusAccepted).JSON(t)
		return path + "/decisions/" + got["pending_decision"].(map[string]any)["id"].(string)
	}
	decision := propose()
	unchanged("proposed")
	if now := second.Do("GET", path, nil).Header.Get("ETag"); now == reviewers {
		t.Error("the reviewer's copy of the case stays valid")
	}
	first.Do("POST", decision+"/withdraw", nil).Expect(t, http.StatusOK)
	unchanged("withdrawn")
	decision = propose()
	second.Do("POST", decision+"/reject", map[string]any{"reason": "no"}).Expect(t, http.StatusOK)
	unchanged("refused")

	// Additions and changes of the rejected do not undo the rejection; the second person sees that they are new.
	decision = propose()
	owner.Do("PUT", path, documents(document("identity_card", "C-9", "2030-01-01"))).Expect(t, http.StatusOK)
	owner.Do("PUT", path, documents(document("passport", "P-1", "2031-01-01"))).Expect(t, http.StatusOK)
	owner.Do("PUT", customer, map[string]any{"last_name": "Anders"}).Expect(t, http.StatusOK)
	var kyc struct {
		Documents []struct{ ID, Number string }
		Pending   struct {
			DocumentsAdded []string `json:"documents_added"`
			ChangedSince   string   `json:"changed_since"`
		} `json:"pending_decision"`
	}
	second.Do("GET", path, nil).Expect(t, http.StatusOK).Into(t, &kyc)
	if added := kyc.Pending.DocumentsAdded; len(added) != 1 || kyc.Pending.ChangedSince == "" || added[0] != kyc.Documents[len(kyc.Documents)-1].ID {
		t.Errorf("the second person sees %+v as new", kyc.Pending)
	}
	fresh := second.Do("GET", path, nil).Header.Get("ETag")
	got := second.With("If-Match", fresh).Do("POST", decision+"/confirm", nil).Expect(t, http.StatusOK).JSON(t)
	if got["kyc_status"] != "rejected" {
		t.Errorf("the customer is %v, want rejected", got["kyc_status"])
	}
}

// A document that is added does not void a verification; no other verification overtakes one that waits.
func TestFourEyes_AddedDocumentsDoNotVoid(t *testing.T) {
	s := servertest.Start(t)
	owner, first, second := s.User(access.Customer), s.User(access.Advisor), s.User(access.Advisor)
	path := inReview(t, owner, first)
	decision := proposed(t, path, first)
	second.Do("PUT", path, passport("P-2").With("verified_at", "2026-01-31T08:00:00Z")).ExpectError(t, http.StatusConflict, "customers.decision_waits")
	owner.Do("PUT", path, documents(document("other", "X-1", ""))).Expect(t, http.StatusOK)
	owner.Do("PUT", path, documents(document("passport", "P-1", "2030-01-01"))).Expect(t, http.StatusOK) // the same again
	second.Do("POST", decision+"/confirm", nil).Expect(t, http.StatusOK)
}
