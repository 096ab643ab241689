package privacy_test

import (
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

// The claims of a customer keep no record of another person: neither a relationship, nor a legal hold. The same values,
// written by staff, do.
func TestErasure_IgnoresClaims(t *testing.T) {
	s := servertest.Start(t)
	admin, advisor := s.Admin(), s.User(access.Advisor)
	type body = map[string]any
	born := "1980-01-01"
	for name, recorder := range map[string]*servertest.Client{"another customer": s.User(access.Customer), "staff": advisor} {
		t.Run(name, func(t *testing.T) {
			victim := s.User(access.Customer)
			address := rows(t, victim.Do("GET", "/v1/users/"+victim.UserID+"/credentials", nil))[0]["value"].(string)
			record := func(members body) string {
				all := body{"first_name": "Ada", "last_name": "Muster", "email": "mallory@example.ch", "date_of_birth": "1985-06-15", "nationality": "CHE"}
				for member, value := range members {
					all[member] = value
				}
				return recorder.Create("/v1/customers", all)
			}
			byStaff := recorder == advisor
			erases := func(what, path, code string) {
				t.Helper()
				reason := body{"reason": "request"}
				if byStaff {
					admin.Do("POST", path+"/erasure", reason).ExpectError(t, 409, code)
					return
				}
				if got := admin.Do("POST", path+"/erasure", reason); got.Status != 200 && got.Status != 202 {
					t.Errorf("%s: got %d %s", what, got.Status, got.Body)
				}
			}
			persona := admin.Create("/v1/personas", body{"first_name": "Viktor", "last_name": name, "date_of_birth": born})
			held := "/v1/customers/" + record(body{"first_name": "Viktor", "last_name": name, "date_of_birth": born})
			admin.Do("PUT", held+"/legal-hold", body{"reason": "A dispute."}).Expect(t, 200)
			erases("the identity of a persona, under a hold", "/v1/personas/"+persona, "privacy.on_hold")

			held = "/v1/customers/" + record(body{"email": address})
			admin.Do("PUT", held+"/legal-hold", body{"reason": "A dispute."}).Expect(t, 200)
			if byStaff {
				erases("the address of a user, under a hold", "/v1/users/"+victim.UserID, "privacy.has_customers")
				admin.Do("DELETE", held+"/legal-hold", nil).Expect(t, 200)
			}
			verify(t, s, record(body{"email": address}))
			erases("the address of a user, with a relationship", "/v1/users/"+victim.UserID, "privacy.has_customers")
		})
	}
}

// The erasure of a customer's persona with the names of another person deletes nothing that is known of that person.
func TestErasure_OfAPersonaKeepsTheFormerNamesOfOthers(t *testing.T) {
	s := servertest.Start(t)
	admin, advisor, stranger := s.Admin(), s.User(access.Advisor), s.User(access.Customer)
	ruth := map[string]any{"first_name": "Ruth", "last_name": "Amsler", "date_of_birth": "1980-01-01"}
	persona := "/v1/personas/" + admin.Create("/v1/personas", ruth)
	admin.Do("POST", persona+"/users", map[string]any{"user_id": advisor.UserID}).Expect(t, 201)
	s.User(access.Advisor).Do("DELETE", persona+"/users/"+advisor.UserID, nil).Expect(t, 200)
	erase(t, admin, "/v1/personas/"+stranger.Create("/v1/personas", ruth))
	customer := "/v1/customers/" + s.User(access.Advisor).Create("/v1/customers", map[string]any{"first_name": "Ruth", "last_name": "Amsler", "date_of_birth": "1980-01-01", "email": "ruth@example.ch"})
	advisor.Do("PATCH", customer+"/kyc/status", map[string]any{"kyc_status": "pending"}).ExpectError(t, 403, "customers.self_verification")
}
