package chats_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

func TestMessages_CountAsUnreadUntilTheyAreRead(t *testing.T) {
	s := servertest.Start(t)
	anna, beat, carla := s.User(access.Advisor), s.User(access.Customer), s.User(access.Customer)
	c := open(t, anna, beat, carla)
	for i := range 3 {
		post(t, anna, c.ID, fmt.Sprint("a", i))
	}
	if m := post(t, beat, c.ID, "b0"); m.Type != "text" || m.SenderID != beat.UserID || len(m.ReadBy) != 0 {
		t.Errorf("got %+v", m)
	}
	want := func(who *servertest.Client, unread int, readBy ...string) {
		t.Helper()
		got := get(t, who, c.ID)
		slices.Sort(readBy)
		slices.Sort(got.LastMessage.ReadBy)
		if got.UnreadCount != unread || got.LastMessage.Content != "b0" || !slices.Equal(got.LastMessage.ReadBy, readBy) {
			t.Errorf("got %d unread, last message %+v, want %d read by %v", got.UnreadCount, *got.LastMessage, unread, readBy)
		}
	}
	want(anna, 1)
	want(beat, 3)
	want(carla, 4)
	read(t, carla, c.ID)
	want(carla, 0, carla.UserID)
	want(beat, 3, carla.UserID)
	read(t, beat, c.ID)
	read(t, beat, c.ID)
	want(beat, 0, carla.UserID, beat.UserID)
	want(anna, 1, carla.UserID, beat.UserID)
	var list []chat
	anna.Do("GET", "/v1/chats", nil).Expect(t, http.StatusOK).Into(t, &list)
	if len(list) != 1 || list[0].UnreadCount != 1 || list[0].LastMessage.Content != "b0" {
		t.Errorf("the list has %+v", list)
	}
}

func TestMessages_ComeInPagesNewestFirst(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Advisor), s.User(access.Customer)
	c, other := open(t, anna, beat), open(t, anna, beat, s.User(access.Customer))
	var written []message
	for i := range 7 {
		s.Clock.Advance(1_000_000_000)
		written = append(written, post(t, anna, c.ID, fmt.Sprint(i)))
	}
	foreign := post(t, anna, other.ID, "elsewhere")
	for query, want := range map[string]string{
		"":                                 "6 5 4 3 2 1 0",
		"?limit=3":                         "6 5 4",
		"?limit=3&before=" + written[4].ID: "3 2 1",
		"?limit=0":                         "6 5 4 3 2 1 0",
		"?before=" + written[0].ID:         "",
		"?before=2026-01-31T08:15:33.123Z": "1 0",
		"?before=2026-01-31T09:15:33.123%2B01:00":              "1 0",
		"?before=2020-01-31T08:15:33Z":                         "",
		"?limit=1000&before=" + strings.ToUpper(written[1].ID): "0",
	} {
		if got := contents(messages(t, beat, c.ID, query)); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
	path := "/v1/chats/" + c.ID + "/messages"
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "before a message of another chat", As: beat, Method: "GET", Path: path + "?before=" + foreign.ID, Status: 400, Contains: []string{`"before"`}},
		{Name: "invalid before", As: beat, Method: "GET", Path: path + "?before=yesterday", Status: 400, Contains: []string{`"before"`}},
		{Name: "limit is not a number", As: beat, Method: "GET", Path: path + "?limit=all", Status: 400, Contains: []string{`"limit"`}},
	})
}

func TestPost_ValidatesTheText(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Advisor), s.User(access.Customer)
	path := "/v1/chats/" + open(t, anna, beat).ID + "/messages"
	say := func(content any) map[string]any {
		return map[string]any{"content": content, "type": "system", "senderId": beat.UserID}
	}
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "maximum length", As: anna, Method: "POST", Path: path, Body: say(strings.Repeat("ä", 10_000)), Status: 201,
			Contains: []string{`"type":"text"`, `"senderId":"` + anna.UserID, `"metadata":{}`, `"readBy":[]`}},
		{Name: "lines", As: anna, Method: "POST", Path: path, Body: say("a\r\nb"), Status: 201, Contains: []string{`a\nb`}},
		{Name: "too long", As: anna, Method: "POST", Path: path, Body: say(strings.Repeat("ä", 10_001)), Status: 400, Contains: []string{"10000"}},
		{Name: "empty", As: anna, Method: "POST", Path: path, Body: say(" \n "), Status: 400, Contains: []string{`"content"`}},
		{Name: "missing", As: anna, Method: "POST", Path: path, Body: map[string]any{}, Status: 400, Contains: []string{`"content"`}},
		{Name: "not a text", As: anna, Method: "POST", Path: path, Body: say(1), Status: 400, Contains: []string{`"content"`}},
		{Name: "control characters", As: anna, Method: "POST", Path: path, Body: say("a\u0000b"), Status: 400, Contains: []string{`"content"`}},
	})
}

func TestPost_IsIdempotent(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Advisor), s.User(access.Customer)
	c := open(t, anna, beat)
	keyed := anna.With("Idempotency-Key", "one")
	if one, again := post(t, keyed, c.ID, "once"), post(t, keyed, c.ID, "once"); one.ID != again.ID {
		t.Errorf("got messages %s and %s", one.ID, again.ID)
	}
	if got := get(t, beat, c.ID); got.UnreadCount != 1 {
		t.Errorf("got %d unread, want 1", got.UnreadCount)
	}
}

func TestPost_CountsUnreadWithParallelWriters(t *testing.T) {
	s := servertest.Start(t)
	anna, beat, carla := s.User(access.Advisor), s.User(access.Customer), s.User(access.Customer)
	c := open(t, anna, beat, carla)
	const writers, each = 64, 4
	var wait sync.WaitGroup
	for i := range writers {
		wait.Go(func() {
			who := []*servertest.Client{anna, beat}[i%2]
			for range each {
				post(t, who, c.ID, "x")
			}
		})
	}
	wait.Wait()
	half := writers * each / 2
	if a, b, c := get(t, anna, c.ID).UnreadCount, get(t, beat, c.ID).UnreadCount, get(t, carla, c.ID).UnreadCount; a != half || b != half || c != 2*half {
		t.Errorf("got %d, %d and %d unread, want %d, %d and %d", a, b, c, half, half, 2*half)
	}
}
