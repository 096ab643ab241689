package app_test

import (
	"net/http"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

// Nationality and the country of payers are any three capital letters. Addresses and documents have countries of ISO 3166-1 or Kosovo.
func TestCountries_AreTakenAsSpecified(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	customer := advisor.Create("/v1/customers", `{"first_name":"Anna","last_name":"Muster","email":"anna@example.ch"}`)
	payer := advisor.Create("/v1/payers", `{"customer_id":"`+customer+`","name":"Anna"}`)
	persona := advisor.Create("/v1/personas", `{"first_name":"Anna","last_name":"Muster","date_of_birth":"1990-01-02"}`)
	code, place := []string{"CHE", "XKX", "XXA", "XXB", "XXC", "XXX", "XQZ", "ANT"}, []string{"CHE", "CH", "XKX", "XK"}
	for _, c := range []struct {
		method, path, body string
		taken              []string
		rejected           []string
	}{
		{"POST", "/v1/customers", `{"first_name":"A","last_name":"K","email":"a.k@example.ch","nationality":"CODE"}`, code, []string{"CH", "xkx", "X1A", "CHEE", " CHE", "ÄXA"}},
		{"PUT", "/v1/customers/" + customer, `{"nationality":"CODE"}`, code, []string{"CH", "xkx"}},
		{"POST", "/v1/personas", `{"first_name":"A","last_name":"K","date_of_birth":"1990-01-02","nationality":"CODE"}`, code, []string{"CH", "", "xkx"}},
		{"PUT", "/v1/personas/" + persona, `{"first_name":"A","last_name":"K","date_of_birth":"1990-01-02","nationality":"CODE"}`, code, []string{"XK", "che"}},
		{"POST", "/v1/payers", `{"customer_id":"` + customer + `","name":"A","country":"CODE"}`, code, []string{"XK", "che"}},
		{"PUT", "/v1/payers/" + payer, `{"country":"CODE"}`, code, []string{"XK", "che"}},
		{"GET", "/v1/payers?country=CODE", "", code, []string{"XK", "che", ""}},
		{"PUT", "/v1/customers/" + customer, `{"address":{"city":"Prishtina","country":"CODE"}}`, place, []string{"XXA", "XQZ", "UK", "xk"}},
		{"PUT", "/v1/customers/" + customer + "/kyc", `{"documents":[{"type":"passport","number":"1","expiry_date":"2035-01-01","country":"CODE"}]}`, place, []string{"XXA", "XQZ"}},
		{"POST", "/v1/customers/duplicates", `{"first_name":"A","last_name":"K","nationality":"CODE"}`, code, []string{"XK"}},
		{"POST", "/v1/screening/check", `{"name":"Anna Muster","country":"CODE"}`, append(code, place...), []string{"XX", "xkx", "X"}},
	} {
		do := func(value string) servertest.Response {
			if c.body == "" {
				return advisor.Do(c.method, strings.ReplaceAll(c.path, "CODE", value), nil)
			}
			return advisor.Do(c.method, c.path, strings.ReplaceAll(c.body, "CODE", value))
		}
		for _, value := range c.taken {
			if answer := do(value); answer.Status >= 300 {
				t.Errorf("%s %s with %s: got %d %s", c.method, c.path, value, answer.Status, answer.Body)
			}
		}
		for _, value := range c.rejected {
			if answer := do(value); answer.Status != http.StatusBadRequest {
				t.Errorf("%s %s with %q: got %d %s, want 400", c.method, c.path, value, answer.Status, answer.Body)
			}
		}
	}
	if found := advisor.Do("GET", "/v1/payers?country=XXA", nil).Expect(t, http.StatusOK); !strings.Contains(found.Body, `"country":"XXA"`) {
		t.Errorf("got %s", found.Body)
	}
}

// A stateless person is verified as others are.
func TestCountries_StatelessPeopleAreVerified(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	id := advisor.Create("/v1/customers", `{"first_name":"Arta","last_name":"K","email":"arta@example.ch","date_of_birth":"1990-01-02","nationality":"XXA"}`)
	answer := advisor.Do("PUT", "/v1/customers/"+id+"/kyc", `{"verified_at":"2026-01-31T08:00:00Z",
		"documents":[{"type":"refugee_travel_document","number":"1","expiry_date":"2035-01-01","country":"CHE"}]}`).Expect(t, http.StatusOK).JSON(t)
	if answer["kyc_status"] != "verified" || answer["verification_level"] != "basic" {
		t.Errorf("got %v", answer)
	}
}
