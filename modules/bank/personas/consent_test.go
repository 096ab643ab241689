package personas_test

import (
	"net/http"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

// link links a user to a persona and returns the state of the link.
func link(t *testing.T, as *servertest.Client, persona, user string) string {
	t.Helper()
	return as.Do("POST", "/v1/personas/"+persona+"/users", map[string]any{"user_id": user}).Expect(t, http.StatusCreated).JSON(t)["status"].(string)
}

func TestAddUser_NeedsStaffOrConsent(t *testing.T) {
	s := servertest.Start(t)
	owner, advisor, other := s.User(access.Customer), s.User(access.Advisor), s.User(access.Advisor)
	id := newPersona(owner)
	accept := "/v1/personas/" + id + "/users/" + advisor.UserID + "/accept"
	if got := link(t, owner, id, owner.UserID); got != "active" {
		t.Errorf("a link by the user is %s, want active", got)
	}
	if got := link(t, s.Admin(), id, other.UserID); got != "active" {
		t.Errorf("a link by staff is %s, want active", got)
	}
	if got := link(t, owner, id, advisor.UserID); got != "pending" {
		t.Fatalf("a link by a customer is %s, want pending", got)
	}
	stranger := s.User(access.Customer)
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "the owner cannot accept it for the user", As: owner, Method: "POST", Path: accept, Status: 403},
		{Name: "nor can another user", As: stranger, Method: "POST", Path: accept, Status: 403},
		{Name: "the user sees the pending link", As: advisor, Method: "GET", Path: "/v1/profile/personas", Status: 200,
			Contains: []string{id, `"status":"pending"`, `"last_name":"Muster"`, `"total":1`}},
		{Name: "but no links of others", As: stranger, Method: "GET", Path: "/v1/profile/personas", Status: 200, Contains: []string{`"total":0`}},
		{Name: "an unknown link", As: stranger, Method: "POST", Path: "/v1/personas/" + id + "/users/" + stranger.UserID + "/accept", Status: 404,
			Contains: []string{`"personas.user_link_not_found"`}},
		{Name: "the user accepts", As: advisor, Method: "POST", Path: accept, Status: 200, Contains: []string{`"status":"active"`}},
		{Name: "accepting again changes nothing", As: advisor, Method: "POST", Path: accept, Status: 200, Contains: []string{`"status":"active"`}},
	})
	rejected := newPersona(owner)
	customer := s.User(access.Customer)
	link(t, owner, rejected, customer.UserID)
	path := "/v1/personas/" + rejected + "/users/" + customer.UserID
	stranger.Do("DELETE", path, nil).Expect(t, http.StatusForbidden)
	customer.Do("GET", "/v1/personas/"+rejected, nil).Expect(t, http.StatusForbidden)
	customer.Do("DELETE", path, nil).Expect(t, http.StatusOK)
	customer.Do("POST", path+"/accept", nil).Expect(t, http.StatusNotFound)
}

// Users who accepted an identity have not accepted a new one that the owner gives to the persona.
func TestUpdate_MakesLinksOfOthersPendingAfterARename(t *testing.T) {
	s := servertest.Start(t)
	owner, user, colleague := s.User(access.Customer), s.User(access.Customer), s.User(access.Advisor)
	id := newPersona(owner)
	link(t, owner, id, user.UserID)
	path := "/v1/personas/" + id
	user.Do("POST", path+"/users/"+user.UserID+"/accept", nil).Expect(t, http.StatusOK)
	owner.Do("PUT", path, ada().With("first_name", "ADA")).Expect(t, http.StatusOK)
	user.Do("GET", path, nil).Expect(t, http.StatusOK) // only the spelling changed
	colleague.Do("PUT", path, ada().With("first_name", "Adah")).Expect(t, http.StatusOK)
	user.Do("GET", path, nil).Expect(t, http.StatusOK) // staff corrected it
	owner.Do("PUT", path, ada().With("first_name", "Mallory")).Expect(t, http.StatusOK)
	user.Do("GET", path, nil).Expect(t, http.StatusForbidden)
	if got := user.Do("GET", "/v1/profile/personas", nil).Body; !strings.Contains(got, `"pending"`) || !strings.Contains(got, "Mallory") {
		t.Errorf("got %s, want a pending link that names Mallory", got)
	}
}

func TestAcceptLink_RelationsOfTrustNeedStaffOrTheOtherSide(t *testing.T) {
	s := servertest.Start(t)
	owner, other := s.User(access.Customer), s.User(access.Customer)
	mine, theirs := newPersona(owner), newPersona(other)
	s.Admin().Do("POST", "/v1/rbac/grants", map[string]any{"user_id": owner.UserID, "rec_type": "personas", "permissions": []string{"read"}, "rec_id": theirs}).
		Expect(t, http.StatusCreated)
	enter := func(as *servertest.Client, from, to, relation string) (path, status string) {
		t.Helper()
		made := as.Do("POST", "/v1/personas/"+from+"/links", map[string]any{"linked_persona_id": to, "relation": relation}).Expect(t, http.StatusCreated).JSON(t)
		return "/v1/personas/" + to + "/links/" + made["id"].(string) + "/accept", made["status"].(string)
	}
	if _, status := enter(owner, mine, theirs, "spouse"); status != "active" {
		t.Errorf("a spouse is %s, want active", status)
	}
	accept, status := enter(owner, mine, theirs, "legal_representative")
	if status != "pending" {
		t.Fatalf("a legal representative is %s, want pending", status)
	}
	fromMine := strings.Replace(accept, theirs, mine, 1)
	own, _ := enter(owner, mine, newPersona(owner), "authorised_signatory")
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "not by its creator", As: owner, Method: "POST", Path: fromMine, Status: 403},
		{Name: "nor between two personas of the creator", As: owner, Method: "POST", Path: own, Status: 403},
		{Name: "nor by a caller who may only read", As: owner, Method: "POST", Path: accept, Status: 403},
		{Name: "by the other side", As: other, Method: "POST", Path: accept, Status: 200, Contains: []string{`"status":"active"`, `"direction":"incoming"`}},
		{Name: "by staff", As: s.User(access.Advisor), Method: "POST", Path: own, Status: 200, Contains: []string{`"status":"active"`}},
		{Name: "an unknown link", As: other, Method: "POST", Path: "/v1/personas/" + theirs + "/links/" + mine + "/accept", Status: 404,
			Contains: []string{`"personas.link_not_found"`}},
	})
	if _, status := enter(s.User(access.Advisor), mine, theirs, "guardian"); status != "active" {
		t.Errorf("a link by staff is %s, want active", status)
	}
}
