package app_test

import (
	"net/http"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
)

// A right that was given on one node begins and ends on each node at its times: the first request after them is decided rightly.
func TestNodes_TermsBeginAndEnd(t *testing.T) {
	a, b := nodes(t)
	reader := a.User(access.Customer)
	customer := a.Admin().Create("/v1/customers", map[string]any{"first_name": "Anna", "last_name": "Keller", "email": "anna@example.ch"})
	question := map[string]any{"subject": map[string]any{"type": "user", "id": reader.UserID}, "action": map[string]any{"name": "read"},
		"resource": map[string]any{"type": "customers", "id": customer}}
	expect := func(when string, node *servertest.Server, allowed bool) {
		t.Helper()
		status := http.StatusForbidden
		if allowed {
			status = http.StatusOK
		}
		if got := at(node, reader).Do("GET", "/v1/customers/"+customer, nil).Status; got != status {
			t.Errorf("%s: got %d, want %d", when, got, status)
		}
		if got := at(node, a.Admin()).Do("POST", "/access/v1/evaluation", question).JSON(t)["decision"]; got != allowed {
			t.Errorf("%s: the evaluation says %v, want %v", when, got, allowed)
		}
	}
	a.Admin().Create("/v1/rbac/grants", map[string]any{"user_id": reader.UserID, "rec_type": "customers", "rec_id": customer,
		"permissions": []string{"read"}, "starts_at": in(a, time.Minute), "expires_at": in(a, 3*time.Minute)})
	expect("before the beginning", b, false)
	a.Clock.Advance(time.Minute)
	expect("at the beginning, on the other node", b, true)
	expect("at the beginning", a, true)
	a.Clock.Advance(2*time.Minute - time.Millisecond)
	expect("just before the end, on the other node", b, true)
	a.Clock.Advance(time.Millisecond)
	expect("at the end, on the other node", b, false)
	expect("at the end", a, false)
}
