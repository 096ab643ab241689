package personas_test

import (
	"net/http"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

func TestPersonas_NameCreatorsEditorsAndLinkedUsers(t *testing.T) {
	s := servertest.Start(t)
	owner, user := s.User(access.Customer).Named(t, "Olivia Owner"), s.User(access.Customer).Named(t, "Urs User")
	advisor := s.User(access.Advisor).Named(t, "Anton Advisor")
	id := newPersona(owner)
	path := "/v1/personas/" + id
	advisor.Do("PUT", path, ada()).Expect(t, http.StatusOK)
	owner.Do("POST", path+"/users", map[string]any{"user_id": user.UserID}).Expect(t, http.StatusCreated)
	owner.Do("POST", path+"/links", relation(newPersona(owner), "parent")).Expect(t, http.StatusCreated)
	for request, want := range map[string][]*servertest.Client{
		path: {owner, advisor}, "/v1/personas": {owner, advisor}, path + "/users": {owner, user}, path + "/links": {owner},
	} {
		people := advisor.Do("GET", request, nil).Expect(t, http.StatusOK).People(t)
		if len(people) != len(want) {
			t.Errorf("%s names %+v, want %d users", request, people, len(want))
		}
		for _, c := range want {
			if got := people[c.UserID]; got.DisplayName == "" || got.UserName == "" || got.Staff != (c == advisor) {
				t.Errorf("%s: %s is %+v", request, c.UserID, got)
			}
		}
	}
	own := user.Do("GET", "/v1/profile/personas", nil).Expect(t, http.StatusOK).People(t)
	if got := own[owner.UserID]; got.DisplayName != "Olivia Owner" || got.UserName != "" || own[user.UserID].DisplayName != "Urs User" {
		t.Errorf("the links of a user name %+v", own)
	}
}

func TestPersonas_KeepTheirETagWhenAUserIsRenamed(t *testing.T) {
	s := servertest.Start(t)
	owner := s.User(access.Customer).Named(t, "Olivia Owner")
	path := "/v1/personas/" + newPersona(owner)
	tag := owner.Do("GET", path, nil).Expect(t, http.StatusOK).Header.Get("ETag")
	owner.Named(t, "Olga Owner")
	owner.With("If-None-Match", tag).Do("GET", path, nil).Expect(t, http.StatusNotModified)
}
