package chats_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

// next returns the address in the header Link, or an empty text.
func next(t *testing.T, r servertest.Response) string {
	t.Helper()
	link := r.Header.Get("Link")
	if link == "" {
		return ""
	}
	address, rel, ok := strings.Cut(strings.TrimPrefix(link, "<"), ">; ")
	if !ok || rel != `rel="next"` {
		t.Fatalf("got Link %q", link)
	}
	return address
}

// fillChats creates chats of two users with messages of the maximum length.
func fillChats(t *testing.T, anna, beat *servertest.Client, s *servertest.Server, n int) (ids []string) {
	t.Helper()
	content := strings.Repeat("€", 10_000)
	metadata := map[string]any{"filler": strings.Repeat("x", 4000), "support": true}
	for range n {
		s.Clock.Advance(1_000_000)
		id := anna.Create("/v1/chats", map[string]any{"participants": []string{beat.UserID}, "metadata": metadata})
		anna.Do("POST", "/v1/chats/"+id+"/messages", map[string]any{"content": content, "metadata": map[string]any{"m": strings.Repeat("y", 4000)}}).
			Expect(t, http.StatusCreated)
		ids = append(ids, id)
	}
	slices.Reverse(ids)
	return ids
}

func TestList_IsWholeHoweverHeavyItIs(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Advisor), s.User(access.Customer)
	want := fillChats(t, anna, beat, s, 110)
	for first, pages := range map[string]int{"/v1/chats": 1, "/v1/chats?limit=110": 1, "/v1/chats?limit=55": 2, "/v1/chats?limit=50&offset=0": 3} {
		var got []string
		read := 0
		for path := first; path != ""; read++ {
			answer := anna.Do("GET", path, nil).Expect(t, http.StatusOK)
			got = append(got, idsOf(t, answer)...)
			path = next(t, answer)
		}
		if !slices.Equal(got, want) || read != pages {
			t.Errorf("%s: got %d chats on %d pages, want all %d in their order on %d", first, len(got), read, len(want), pages)
		}
	}
	var got []string
	for offset := 0; offset < len(want); offset += 60 {
		got = append(got, idsOf(t, anna.Do("GET", fmt.Sprint("/v1/chats?limit=60&offset=", offset), nil).Expect(t, http.StatusOK))...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("by offset: got %d chats, want all %d in their order", len(got), len(want))
	}
	if head := anna.Do("HEAD", "/v1/chats", nil).Expect(t, http.StatusOK); head.Body != "" {
		t.Errorf("HEAD has a body of %d bytes", len(head.Body))
	}
	anna.Do("GET", "/v1/users/me", nil).Expect(t, http.StatusOK) // on the same connection
}

// idsOf returns the ids of the chats or messages of an answer.
func idsOf(t *testing.T, answer servertest.Response) (ids []string) {
	t.Helper()
	var list []struct{ ID string }
	answer.Into(t, &list)
	for _, c := range list {
		ids = append(ids, c.ID)
	}
	return ids
}

func TestList_RejectsInvalidCursors(t *testing.T) {
	s := servertest.Start(t)
	anna := s.User(access.Customer)
	for _, before := range []string{"x", "1", "1.", ".0193a000-0000-7000-8000-000000000001", "-1.0193a000-0000-7000-8000-000000000001",
		"99999999999999999999.0193a000-0000-7000-8000-000000000001", "1.0193a000", "1.%00"} {
		if got := anna.Do("GET", "/v1/chats?before="+before, nil); got.Status != 400 || !strings.Contains(got.Body, `"before"`) {
			t.Errorf("%s: got %d %s, want 400", before, got.Status, got.Body)
		}
	}
	if got := anna.Do("GET", "/v1/chats?before=0."+store.NewID(), nil).Expect(t, http.StatusOK); got.Body != "[]" || got.Header.Get("Link") != "" {
		t.Errorf("after the end: got %s with Link %q", got.Body, got.Header.Get("Link"))
	}
}

func TestMessages_PagesAreWholeHoweverHeavyTheyAre(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Advisor), s.User(access.Customer)
	id := open(t, anna, beat).ID
	body := map[string]any{"content": strings.Repeat("€", 10_000), "metadata": map[string]any{"m": strings.Repeat("y", 4000)}}
	for range 60 {
		anna.Do("POST", "/v1/chats/"+id+"/messages", body).Expect(t, http.StatusCreated)
	}
	for first, pages := range map[string]int{"?limit=100": 1, "?limit=25": 3, "": 2} {
		total, read := 0, 0
		for path := "/v1/chats/" + id + "/messages" + first; path != ""; read++ {
			answer := beat.Do("GET", path, nil).Expect(t, http.StatusOK)
			total += len(idsOf(t, answer))
			path = next(t, answer)
		}
		if total != 60 || read != pages {
			t.Errorf("%s: got %d messages on %d pages, want 60 on %d", first, total, read, pages)
		}
	}
}

func TestMetadata_IsBounded(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Advisor), s.User(access.Customer)
	id := open(t, anna, beat).ID
	fits := map[string]any{"x": strings.Repeat("x", 4096-len(`{"x":""}`))}
	large := map[string]any{"x": strings.Repeat("x", 4097-len(`{"x":""}`))}
	userIDs := []string{beat.UserID, s.User(access.Customer).UserID}
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "a chat with metadata of the maximum size", As: anna, Method: "POST", Path: "/v1/chats", Body: map[string]any{"participants": userIDs, "metadata": fits}, Status: 201},
		{Name: "a chat with a byte more", As: anna, Method: "POST", Path: "/v1/chats", Body: map[string]any{"participants": userIDs, "metadata": large}, Status: 400,
			Contains: []string{`"metadata"`, "4096"}},
		{Name: "a message with metadata of the maximum size", As: anna, Method: "POST", Path: "/v1/chats/" + id + "/messages", Body: map[string]any{"content": "a", "metadata": fits}, Status: 201},
		{Name: "a message with a byte more", As: anna, Method: "POST", Path: "/v1/chats/" + id + "/messages", Body: map[string]any{"content": "a", "metadata": large},
			Status: 400, Contains: []string{`"metadata"`, "4096"}},
	})
}
