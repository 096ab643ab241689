package personas_test

import (
	"net/http"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

// A customer gives their persona the names and the date of birth of a reviewer. It is not the reviewer's for that: they may correct and
// erase it.
func TestClaims_MakeNoPersonaTheReviewers(t *testing.T) {
	s := servertest.Start(t)
	admin, reviewer, attacker := s.Admin(), s.User(access.Advisor), s.User(access.Customer)
	grace := map[string]any{"first_name": "Grace", "last_name": "Hopper", "date_of_birth": "1906-12-09"}
	other := map[string]any{"first_name": "Ada", "last_name": "Muster", "date_of_birth": "1990-02-28"}
	own := "/v1/personas/" + admin.Create("/v1/personas", grace)
	admin.Do("POST", own+"/users", map[string]any{"user_id": reviewer.UserID}).Expect(t, http.StatusCreated)
	claimed := "/v1/personas/" + attacker.Create("/v1/personas", grace)
	former := "/v1/personas/" + attacker.Create("/v1/personas", grace)
	attacker.Do("PUT", former, other).Expect(t, http.StatusOK)
	for _, path := range []string{claimed, former} {
		reviewer.Do("PUT", path, other).Expect(t, http.StatusOK)
	}
	// One to which staff gave the names is.
	same := "/v1/personas/" + admin.Create("/v1/personas", grace)
	reviewer.Do("PUT", same, other).ExpectError(t, http.StatusForbidden, "personas.own_persona")
}
