package privacy_test

import (
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

// Retention, holds and proofs follow the latest and all evidence. The end of the test compares the records with the audit trail.
func TestErasure_FollowsAllEvidence(t *testing.T) {
	s := servertest.Start(t)
	admin, other, owner := s.Admin(), s.User(access.Advisor), s.User(access.Customer)
	reason := map[string]any{"reason": "request"}

	customer := "/v1/customers/" + newCustomer(owner, "young@example.ch")
	admin.Do("PUT", customer+"/kyc", map[string]any{"verified_at": "2009-01-01T00:00:00Z", "documents": []map[string]any{
		{"type": "passport", "number": "X1", "expiry_date": "2099-05-01", "country": "CHE"}}}).Expect(t, 200)
	admin.Do("PUT", customer+"/relationship", map[string]any{"ended_at": "2010-01-01T00:00:00Z"}).ExpectError(t, 400, "common.invalid_input")
	admin.Do("POST", customer+"/erasure", reason).ExpectError(t, 409, "privacy.relationship_open")

	s.Clock.Advance(200 * 24 * 3600 * 1e9)
	admin, other = s.SignIn(servertest.AdminEmail, servertest.AdminPassword), s.SignIn(other.UserID, "a long enough password 42")
	past := map[string]any{"ended_at": "2026-02-02T00:00:00Z"}
	for range 2 { // the same person does not confirm
		if got := admin.Do("PUT", customer+"/relationship", past).Expect(t, 202).JSON(t); got["ended_at"] != nil || got["proposed_end"] == nil {
			t.Errorf("got %v", got)
		}
	}
	if got := other.Do("PUT", customer+"/relationship", past).Expect(t, 200).JSON(t); got["ended_at"] == nil {
		t.Errorf("a second person confirmed, got %v", got)
	}

	person := s.User(access.Customer)
	held := "/v1/customers/" + newCustomer(person, "held@example.ch")
	persona := admin.Create("/v1/personas", map[string]any{"first_name": "Ada", "last_name": "Muster", "date_of_birth": "1980-01-01"})
	admin.Do("POST", "/v1/personas/"+persona+"/users", map[string]any{"user_id": person.UserID}).Expect(t, 201)
	admin.Do("PUT", held+"/legal-hold", map[string]any{"reason": "A dispute."}).Expect(t, 200)
	person.Do("PUT", held, map[string]any{"email": "else@example.ch"}).Expect(t, 200)
	admin.Do("POST", "/v1/personas/"+persona+"/erasure", reason).ExpectError(t, 409, "privacy.on_hold")
	admin.Do("POST", "/v1/users/"+person.UserID+"/erasure", reason).ExpectError(t, 409, "privacy.on_hold")
	admin.Do("DELETE", held+"/legal-hold", nil).Expect(t, 200)
	erase(t, admin, "/v1/users/"+person.UserID) // a lawful erasure still works
}
