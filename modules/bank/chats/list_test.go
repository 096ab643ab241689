package chats_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/endpoint"
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

func TestList_BoundsPagesAndLinksToTheNext(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Advisor), s.User(access.Customer)
	want := fillChats(t, anna, beat, s, 70)
	for _, first := range []string{"/v1/chats", "/v1/chats?limit=30", "/v1/chats?limit=7&offset=0"} {
		var got []string
		pages := 0
		for path := first; path != ""; pages++ {
			answer := anna.Do("GET", path, nil).Expect(t, http.StatusOK)
			if len(answer.Body) > endpoint.PageBytes {
				t.Fatalf("%s: got %d bytes, want at most %d", path, len(answer.Body), endpoint.PageBytes)
			}
			var list []chat
			answer.Into(t, &list)
			if len(list) == 0 {
				t.Fatalf("%s: got an empty page", path)
			}
			for _, c := range list {
				got = append(got, c.ID)
			}
			path = next(t, answer)
		}
		if !slices.Equal(got, want) || pages < 3 {
			t.Errorf("%s: got %d chats on %d pages, want all %d in their order on several", first, len(got), pages, len(want))
		}
	}
	if all := anna.Do("GET", "/v1/chats", nil); len(all.Body) < endpoint.PageBytes-60_000 {
		t.Errorf("a page has %d bytes though more chats would fit", len(all.Body))
	}
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

func TestMessages_BoundsPagesAndLinksToTheNext(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Advisor), s.User(access.Customer)
	id := open(t, anna, beat).ID
	body := map[string]any{"content": strings.Repeat("€", 10_000), "metadata": map[string]any{"m": strings.Repeat("y", 4000)}}
	for range 60 {
		anna.Do("POST", "/v1/chats/"+id+"/messages", body).Expect(t, http.StatusCreated)
	}
	for _, first := range []string{"?limit=100", "?limit=25", ""} {
		total, pages := 0, 0
		for path := "/v1/chats/" + id + "/messages" + first; path != ""; pages++ {
			answer := beat.Do("GET", path, nil).Expect(t, http.StatusOK)
			if len(answer.Body) > endpoint.PageBytes {
				t.Fatalf("%s: got %d bytes, want at most %d", path, len(answer.Body), endpoint.PageBytes)
			}
			var list []message
			answer.Into(t, &list)
			total += len(list)
			path = next(t, answer)
		}
		if total != 60 || pages < 2 {
			t.Errorf("%s: got %d messages on %d pages, want 60 on several", first, total, pages)
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
