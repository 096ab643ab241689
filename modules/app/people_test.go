package app_test

import (
	"net/http"
	"testing"

	"kontor/server/endpoint"
	"kontor/server/servertest"
)

// People whom an answer names have the names that they have now. Only staff read sign-in names.
func TestPeople_InAnswers(t *testing.T) {
	s := servertest.Start(t)
	admin, customer, other := s.Admin(), s.User("Customer"), s.User("Customer")
	admin.Do("PATCH", "/v1/users/"+customer.UserID, map[string]any{"display_name": "Anna Keller"}).Expect(t, http.StatusOK)
	var me struct {
		ID          string `json:"id"`
		DisplayName string `json:"display_name"`
	}
	customer.Do("GET", "/v1/users/me", nil).Expect(t, http.StatusOK).Into(t, &me)
	if me.DisplayName != "Anna Keller" {
		t.Fatalf("got %+v", me)
	}
	var created struct {
		ID     string                     `json:"id"`
		People map[string]endpoint.Person `json:"people"`
	}
	customer.Do("POST", "/v1/personas", map[string]any{"first_name": "Anna", "last_name": "Keller", "date_of_birth": "1990-02-03"}).
		Expect(t, http.StatusCreated).Into(t, &created)
	if got := created.People[customer.UserID]; got != (endpoint.Person{DisplayName: "Anna Keller"}) {
		t.Errorf("the creation answers %+v", created.People)
	}
	customer.Do("PATCH", "/v1/users/"+customer.UserID, map[string]any{"display_name": "Anna Brunner"}).Expect(t, http.StatusOK)
	people := func(as *servertest.Client) endpoint.Person {
		t.Helper()
		created.People = nil
		as.Do("GET", "/v1/personas/"+created.ID, nil).Expect(t, http.StatusOK).Into(t, &created)
		return created.People[customer.UserID]
	}
	if got := people(customer); got != (endpoint.Person{DisplayName: "Anna Brunner"}) {
		t.Errorf("the customer reads %+v", got)
	}
	if got := people(s.User("Advisor")); got.UserName == "" || got.DisplayName != "Anna Brunner" || got.Staff {
		t.Errorf("an advisor reads %+v", got)
	}
	other.Do("GET", "/v1/personas/"+created.ID, nil).Expect(t, http.StatusForbidden)
	// Every user is rejected who requests the name of a staff member.
	advisor := s.User("Advisor")
	admin.Do("PATCH", "/v1/users/"+advisor.UserID, map[string]any{"display_name": "Lena Brunner"}).Expect(t, http.StatusOK)
	other.Do("PATCH", "/v1/users/"+other.UserID, map[string]any{"display_name": "Brunner, Lena"}).Expect(t, http.StatusConflict)
}
