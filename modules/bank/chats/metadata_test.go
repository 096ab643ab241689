package chats_test

import (
	"net/http"
	"sync"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

// Two users have one chat for each metadata. Without metadata they get their first one.
func TestCreate_ChatsOfTwoUsersByTheirMetadata(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Advisor), s.User(access.Customer)
	post := func(as, other *servertest.Client, metadata string) (id string, status int) {
		body := `{"participants":["` + other.UserID + `"]`
		if metadata != "" {
			body += `,"metadata":` + metadata
		}
		answer := as.Do("POST", "/v1/chats", body+"}")
		return answer.JSON(t)["id"].(string), answer.Status
	}
	first, _ := post(anna, beat, `{"topic":"mortgage","year":2026}`)
	chats := map[string]string{"": first}
	for _, c := range []struct {
		metadata string
		same     string // as which earlier metadata
		created  bool
	}{
		{"", "", false}, {"{}", "", false}, {"null", "", false},
		{`{"topic":"mortgage","year":2026}`, "", false}, {` { "year" : 2026, "topic":"mort\u0067age" } `, "", false},
		{`{"topic":"cards"}`, "cards", true}, {`{"topic":"cards"}`, "cards", false}, {`{"topic":"mortgage"}`, "other", true},
		{`{"year":2026,"topic":"mortgage","x":null}`, "null", true}, {`{"n":9007199254740993}`, "large", true}, {`{"n":9007199254740992}`, "larger", true},
		{`{"a":{"b":[1,2],"c":true}}`, "deep", true}, {`{"a":{"c":true,"b":[1,2]}}`, "deep", false}, {`{"a":{"c":true,"b":[2,1]}}`, "order", true}, {"", "", false},
	} {
		for as, other := range map[*servertest.Client]*servertest.Client{anna: beat, beat: anna} {
			id, status := post(as, other, c.metadata)
			if want := map[bool]int{true: http.StatusCreated, false: http.StatusOK}[c.created]; status != want {
				t.Errorf("%s: got %d, want %d", c.metadata, status, want)
			}
			if known := chats[c.same]; known == "" {
				chats[c.same] = id
			} else if id != known {
				t.Errorf("%s: got another chat than that of %q", c.metadata, c.same)
			}
			c.created = false // for the other user
		}
	}
	seen := map[string]bool{}
	for _, id := range chats {
		seen[id] = true
	}
	if list := idsOf(t, anna.Do("GET", "/v1/chats", nil).Expect(t, http.StatusOK)); len(list) != len(seen) || len(seen) != len(chats) {
		t.Errorf("got %d chats, want %d", len(list), len(chats))
	}
}

// Requests at the same time do not create two chats where one is due.
func TestCreate_AtTheSameTimeCreatesOneChat(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Advisor), s.User(access.Customer)
	for _, body := range []map[string]any{{}, {"metadata": map[string]any{"topic": "cards"}}} {
		var group sync.WaitGroup
		answers := make(chan servertest.Response, 8)
		for i := range cap(answers) {
			as, other := anna, beat
			if i%2 == 1 {
				as, other = beat, anna
			}
			group.Go(func() {
				answer, err := as.Try("POST", "/v1/chats", map[string]any{"participants": []string{other.UserID}, "metadata": body["metadata"]})
				if err != nil {
					t.Error(err)
				}
				answers <- answer
			})
		}
		group.Wait()
		ids, statuses := map[string]bool{}, map[int]int{}
		for range cap(answers) {
			answer := <-answers
			ids[answer.JSON(t)["id"].(string)] = true
			statuses[answer.Status]++
		}
		if len(ids) != 1 || statuses[http.StatusCreated] != 1 || statuses[http.StatusOK] != cap(answers)-1 {
			t.Errorf("%v: got %d chats, %v", body, len(ids), statuses)
		}
	}
}
