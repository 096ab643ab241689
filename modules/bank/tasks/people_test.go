package tasks_test

import (
	"net/http"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

// named is an answer with the users whom it names.
type named struct {
	People map[string]struct {
		DisplayName string  `json:"display_name"`
		UserName    *string `json:"user_name"`
		Staff       bool    `json:"staff"`
	} `json:"people"`
}

// rename sets the display name of a user.
func rename(t testing.TB, user *servertest.Client, name string) {
	t.Helper()
	user.Do("PATCH", "/v1/users/"+user.UserID, map[string]any{"display_name": name}).Expect(t, http.StatusOK)
}

func TestPeople_AreCreatorAssigneesAndAuthorsOfTheLog(t *testing.T) {
	s := servertest.Start(t)
	advisor, colleague, assigned, former, stranger := s.User(access.Advisor), s.User(access.Advisor), s.User(access.Customer), s.User(access.Customer), s.User(access.Customer)
	rename(t, assigned, "Carla Muster")
	data := contract(assigned)
	data["metadata"] = body{"by": stranger.UserID, "user_id": stranger.UserID, "note": `,"logs":[{"by":"` + stranger.UserID + `"}]`,
		"actions": body{"user_id": stranger.UserID}, "logs": []body{{"by": stranger.UserID}}}
	made, path := newTask(t, advisor, newCustomer(advisor), data)
	added := s.Admin().Create(path+"/assignees", body{"user_id": former.UserID})
	colleague.Do("PATCH", path+"/status", body{"status": "in_progress", "reason": `"by":"` + stranger.UserID + `"`}).Expect(t, http.StatusOK)
	s.Admin().Do("DELETE", path+"/assignees/"+added, nil).Expect(t, http.StatusOK)

	want := []string{advisor.UserID, assigned.UserID, former.UserID, colleague.UserID, s.Admin().UserID}
	for reader, staff := range map[*servertest.Client]bool{advisor: true, assigned: false} {
		var one, list named
		reader.Do("GET", path, nil).Expect(t, http.StatusOK).Into(t, &one)
		reader.Do("GET", "/v1/tasks", nil).Expect(t, http.StatusOK).Into(t, &list)
		for name, got := range map[string]named{"get": one, "list": list} {
			if len(got.People) != len(want) || got.People[assigned.UserID].DisplayName != "Carla Muster" || !got.People[advisor.UserID].Staff {
				t.Errorf("%s: got %+v, want %v", name, got.People, want)
			}
			for _, id := range want {
				if _, known := got.People[id]; !known {
					t.Errorf("%s: %s is missing from %+v", name, id, got.People)
				}
			}
			if shown := got.People[assigned.UserID].UserName != nil; shown != staff {
				t.Errorf("%s: the reader is staff: %t; the user name is shown: %t", name, staff, shown)
			}
		}
	}
	var changed named
	assigned.Do("PATCH", path+"/assignees/"+made.Assignees[0].ID, body{"status": "accepted"}).Expect(t, http.StatusOK).Into(t, &changed)
	if got := changed.People; len(got) != 1 || got[assigned.UserID].DisplayName != "Carla Muster" {
		t.Errorf("an assignee: got %+v", got)
	}
}

func TestPeople_FollowARenameAtOnceAndLeaveTheETagAlone(t *testing.T) {
	s := servertest.Start(t)
	advisor, assigned := s.User(access.Advisor), s.User(access.Customer)
	rename(t, assigned, "Carla Muster")
	keyed := advisor.With("Idempotency-Key", "one")
	url, data := "/v1/customers/"+newCustomer(advisor)+"/tasks", contract(assigned)
	first := keyed.Do("POST", url, data).Expect(t, http.StatusCreated)
	rename(t, assigned, "Carla Neumann")
	if again := keyed.Do("POST", url, data).Expect(t, http.StatusCreated); again.Body != first.Body || !strings.Contains(first.Body, "Carla Muster") {
		t.Errorf("the same key got %s and then %s", first.Body, again.Body)
	}
	got := advisor.Do("GET", url+"/"+first.JSON(t)["id"].(string), nil).Expect(t, http.StatusOK)
	if !strings.Contains(got.Body, "Carla Neumann") || strings.Contains(got.Body, "Carla Muster") {
		t.Errorf("got %s, want the new name", got.Body)
	}
	if got.Header.Get("ETag") != first.Header.Get("ETag") {
		t.Errorf("a rename changed the ETag from %s to %s", first.Header.Get("ETag"), got.Header.Get("ETag"))
	}
}
