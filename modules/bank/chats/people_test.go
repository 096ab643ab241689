package chats_test

import (
	"net/http"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

// person is a user in the member people of an answer.
type person struct {
	DisplayName string  `json:"display_name"`
	UserName    *string `json:"user_name"`
	Staff       bool    `json:"staff"`
}

// named is an answer, or an element of one, with the users whom it names.
type named struct {
	People map[string]person `json:"people"`
}

// rename sets the display name of a user.
func rename(t testing.TB, user *servertest.Client, name string) {
	t.Helper()
	user.Do("PATCH", "/v1/users/"+user.UserID, map[string]any{"display_name": name}).Expect(t, http.StatusOK)
}

func TestPeople_AreNamedInAnswersAboutChats(t *testing.T) {
	s := servertest.Start(t)
	anna, beat, carla, stranger := s.User(access.Advisor), s.User(access.Customer), s.User(access.Customer), s.User(access.Customer)
	rename(t, anna, "Anna Keller")
	rename(t, beat, "Beat Muster")
	body := with(beat, carla)
	body["metadata"] = map[string]any{"names": map[string]any{beat.UserID: "Somebody else", stranger.UserID: "Nobody"}}
	var created named
	path := "/v1/chats/"
	answer := anna.Do("POST", "/v1/chats", body).Expect(t, http.StatusCreated)
	answer.Into(t, &created)
	id := answer.JSON(t)["id"].(string)
	path += id
	beat.Do("POST", path+"/messages", map[string]any{"content": "hello", "metadata": map[string]any{"userId": stranger.UserID}}).Expect(t, http.StatusCreated)

	for reader, staff := range map[*servertest.Client]bool{anna: true, beat: false} {
		var one, marked named
		var listed, messages []named
		reader.Do("GET", path, nil).Expect(t, http.StatusOK).Into(t, &one)
		reader.Do("POST", path+"/read", nil).Expect(t, http.StatusOK).Into(t, &marked)
		reader.Do("GET", "/v1/chats", nil).Expect(t, http.StatusOK).Into(t, &listed)
		reader.Do("GET", path+"/messages", nil).Expect(t, http.StatusOK).Into(t, &messages)
		for name, got := range map[string]named{"get": one, "mark as read": marked, "list": listed[0]} {
			if len(got.People) != 3 || got.People[beat.UserID].DisplayName != "Beat Muster" || !got.People[anna.UserID].Staff || got.People[beat.UserID].Staff {
				t.Errorf("%s: got %+v, want the three participants", name, got.People)
			}
			if shown := got.People[beat.UserID].UserName != nil; shown != staff {
				t.Errorf("%s: the reader is staff: %t; the user name is shown: %t", name, staff, shown)
			}
		}
		if got := messages[0].People; len(got) != 1 || got[beat.UserID].DisplayName != "Beat Muster" {
			t.Errorf("messages: got %+v, want the sender", got)
		}
	}
	if len(created.People) != 3 {
		t.Errorf("create: got %+v, want the three participants", created.People)
	}
}

func TestPeople_OfSystemMessagesIncludeTheParticipant(t *testing.T) {
	s := servertest.Start(t)
	anna, beat, carla := s.User(access.Advisor), s.User(access.Customer), s.User(access.Customer)
	rename(t, carla, "Carla Muster")
	path := "/v1/chats/" + open(t, anna, beat, carla).ID
	anna.Do("DELETE", path+"/participants/"+carla.UserID, nil).Expect(t, http.StatusOK)
	var messages []named
	beat.Do("GET", path+"/messages", nil).Expect(t, http.StatusOK).Into(t, &messages)
	if got := messages[0].People; len(got) != 2 || got[carla.UserID].DisplayName != "Carla Muster" {
		t.Errorf("got %+v, want the sender and the removed participant", got)
	}
}

func TestPeople_FollowARenameAtOnceAndLeaveTheETagAlone(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Advisor), s.User(access.Customer)
	rename(t, beat, "Beat Muster")
	path := "/v1/chats/" + open(t, anna, beat).ID
	before := anna.Do("GET", path, nil).Expect(t, http.StatusOK)
	rename(t, beat, "Beat Neumann")
	after := anna.Do("GET", path, nil).Expect(t, http.StatusOK)
	if !strings.Contains(before.Body, "Beat Muster") || !strings.Contains(after.Body, "Beat Neumann") || strings.Contains(after.Body, "Beat Muster") {
		t.Errorf("got %s and then %s", before.Body, after.Body)
	}
	if before.Header.Get("ETag") != after.Header.Get("ETag") {
		t.Errorf("a rename changed the ETag from %s to %s", before.Header.Get("ETag"), after.Header.Get("ETag"))
	}
}

func TestPeople_AreRepeatedByteByByteForTheSameKey(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Advisor), s.User(access.Customer)
	rename(t, anna, "Anna Keller")
	path := "/v1/chats/" + open(t, anna, beat).ID
	keyed := anna.With("Idempotency-Key", "one")
	for url, body := range map[string]any{"/v1/chats": with(beat, s.User(access.Customer)), path + "/messages": map[string]any{"content": "hello"}} {
		first := keyed.Do("POST", url, body).Expect(t, http.StatusCreated)
		rename(t, anna, "Anna Neumann")
		if again := keyed.Do("POST", url, body).Expect(t, http.StatusCreated); again.Body != first.Body || !strings.Contains(first.Body, `"people":{`) {
			t.Errorf("%s: got %s and then %s", url, first.Body, again.Body)
		}
		rename(t, anna, "Anna Keller")
	}
}
