package app_test

import (
	"net/http"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

// The explanation of a list is for administrators who ask for it: it shows how the data of all users are stored, and the time of steps
// depends on them.
func TestExplanation_IsForAdministratorsWhoAsk(t *testing.T) {
	s := servertest.Start(t)
	admin, advisor, customer := s.Admin(), s.User(access.Advisor), s.User(access.Customer)
	admin.Create("/v1/customers", servertest.Body{"first_name": "Anna", "last_name": "Keller-Sprüngli", "email": "keller@example.ch"})
	const path = "/v1/customers?search.last_name=keller-spr*&sort=last_name"
	for name, c := range map[string]struct {
		client       *servertest.Client
		method, path string
		header       string
		explained    bool
	}{
		"an administrator":                 {admin, http.MethodGet, path, "true", true},
		"a deep page":                      {admin, http.MethodGet, path + "&offset=5000", "true", true},
		"an administrator who did not ask": {admin, http.MethodGet, path, "", false},
		"another value":                    {admin, http.MethodGet, path, "1", false},
		"no list":                          {admin, http.MethodGet, "/v1/users/" + admin.UserID, "true", false},
		"no such path":                     {admin, http.MethodGet, "/v1/unicorns", "true", false},
		"an advisor":                       {advisor, http.MethodGet, path, "true", false},
		"a customer":                       {customer, http.MethodGet, path, "true", false},
		"an anonymous client":              {s.Anonymous(), http.MethodGet, path, "true", false},
	} {
		client := c.client
		if c.header != "" {
			client = client.With("X-Explain", c.header)
		}
		answer := client.Do(c.method, c.path, nil)
		text := answer.Header.Get("X-Explanation")
		if (text != "") != c.explained {
			t.Errorf("%s: status %d, explanation %q", name, answer.Status, text)
		}
		if strings.Contains(strings.ToLower(text), "keller") {
			t.Errorf("%s: the explanation has a value: %s", name, text)
		}
		if !c.explained {
			continue
		}
		for _, want := range []string{`"name":"count"`, `"sql":"SELECT `, `"why":"`} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %s lacks %s", name, text, want)
			}
		}
	}
	plain := admin.Do(http.MethodGet, path, nil)
	if asked := admin.With("X-Explain", "true").Do(http.MethodGet, path, nil); asked.Body != plain.Body {
		t.Errorf("the answer differs: %s, %s", asked.Body, plain.Body)
	}
}
