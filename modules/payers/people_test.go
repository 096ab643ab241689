package payers_test

import (
	"net/http"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

func TestPayers_NameCreatorAndEditor(t *testing.T) {
	s := servertest.Start(t)
	owner, advisor := s.User(access.Customer).Named(t, "Olivia Owner"), s.User(access.Advisor).Named(t, "Anton Advisor")
	created := owner.Do("POST", "/v1/payers", payer(newCustomer(owner))).Expect(t, http.StatusCreated)
	if got := created.People(t)[owner.UserID]; got.DisplayName != "Olivia Owner" || got.UserName != "" || got.Staff {
		t.Errorf("the answer to the creation names %+v", got)
	}
	path := "/v1/payers/" + created.JSON(t)["id"].(string)
	changed := advisor.Do("PUT", path, map[string]any{"company": "Neu AG"}).Expect(t, http.StatusOK)
	tag := changed.Header.Get("ETag")
	owner.Named(t, "Olga Owner")
	for name, answer := range map[string]servertest.Response{
		"record": advisor.Do("GET", path, nil).Expect(t, http.StatusOK),
		"list":   advisor.Do("GET", "/v1/payers", nil).Expect(t, http.StatusOK),
	} {
		people := answer.People(t)
		if got := people[owner.UserID]; got.DisplayName != "Olga Owner" || got.UserName == "" || got.Staff {
			t.Errorf("%s: the creator is %+v", name, got)
		}
		if got := people[advisor.UserID]; got.DisplayName != "Anton Advisor" || !got.Staff {
			t.Errorf("%s: the editor is %+v", name, got)
		}
	}
	advisor.With("If-None-Match", tag).Do("GET", path, nil).Expect(t, http.StatusNotModified)
}
