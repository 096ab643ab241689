package chats_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

// chat is a chat as clients decode it.
type chat struct {
	ID           string         `json:"id"`
	Type         string         `json:"type"`
	Participants []string       `json:"participants"`
	LastMessage  *message       `json:"lastMessage"`
	UnreadCount  int            `json:"unreadCount"`
	Metadata     map[string]any `json:"metadata"`
}

type message struct {
	ID       string   `json:"id"`
	SenderID string   `json:"senderId"`
	Content  string   `json:"content"`
	Type     string   `json:"type"`
	ReadBy   []string `json:"readBy"`
}

// with returns the body of a request for a new chat.
func with(others ...*servertest.Client) map[string]any {
	ids := make([]string, len(others))
	for i, c := range others {
		ids[i] = c.UserID
	}
	return map[string]any{"participants": ids}
}

func open(t testing.TB, creator *servertest.Client, others ...*servertest.Client) chat {
	t.Helper()
	var c chat
	creator.Do("POST", "/v1/chats", with(others...)).Expect(t, http.StatusCreated).Into(t, &c)
	return c
}

func post(t testing.TB, as *servertest.Client, chatID, content string) message {
	t.Helper()
	var m message
	as.Do("POST", "/v1/chats/"+chatID+"/messages", map[string]any{"content": content}).Expect(t, http.StatusCreated).Into(t, &m)
	return m
}

func read(t testing.TB, as *servertest.Client, chatID string) {
	t.Helper()
	as.Do("POST", "/v1/chats/"+chatID+"/read", nil).Expect(t, http.StatusOK)
}

func get(t testing.TB, as *servertest.Client, chatID string) chat {
	t.Helper()
	var c chat
	as.Do("GET", "/v1/chats/"+chatID, nil).Expect(t, http.StatusOK).Into(t, &c)
	return c
}

func messages(t testing.TB, as *servertest.Client, chatID, query string) []message {
	t.Helper()
	var list []message
	as.Do("GET", "/v1/chats/"+chatID+"/messages"+query, nil).Expect(t, http.StatusOK).Into(t, &list)
	return list
}

func contents(list []message) string {
	texts := make([]string, len(list))
	for i, m := range list {
		texts[i] = m.Content
	}
	return strings.Join(texts, " ")
}

func TestCreate_DerivesTheTypeAndAddsTheCreator(t *testing.T) {
	s := servertest.Start(t)
	anna, beat, carla := s.User(access.Advisor), s.User(access.Customer), s.User(access.Customer)
	support := with(beat)
	support["metadata"] = map[string]any{"support": true}
	for name, c := range map[string]struct {
		body map[string]any
		kind string
		size int
	}{
		"two":                       {with(beat), "direct", 2},
		"the creator named, too":    {with(carla, anna), "direct", 2},
		"three":                     {with(beat, carla), "group", 3},
		"support":                   {support, "support", 2},
		"one of them named twice":   {with(beat, carla, beat), "group", 3},
		"an id in capitals":         {map[string]any{"participants": []string{strings.ToUpper(beat.UserID), carla.UserID}}, "group", 3},
		"userIDs nobody may choose": {map[string]any{"participants": []string{beat.UserID, carla.UserID}, "type": "direct", "createdBy": carla.UserID, "id": "x"}, "group", 3},
	} {
		t.Run(name, func(t *testing.T) {
			answer := anna.Do("POST", "/v1/chats", c.body).Expect(t, http.StatusCreated)
			var got chat
			answer.Into(t, &got)
			if got.Type != c.kind || len(got.Participants) != c.size || !slices.Contains(got.Participants, anna.UserID) {
				t.Errorf("got a %s chat of %v, want %s of %d, with the creator", got.Type, got.Participants, c.kind, c.size)
			}
			if !strings.Contains(answer.Body, `"lastMessage":null`) || !strings.Contains(answer.Body, `"unreadCount":0`) || answer.Header.Get("ETag") == "" {
				t.Errorf("got %s with ETag %q", answer.Body, answer.Header.Get("ETag"))
			}
		})
	}
}

func TestCreate_RejectsInvalidParticipants(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Advisor), s.User(access.Customer)
	s.Admin().Do("PATCH", "/v1/users/"+beat.UserID, map[string]any{"status": "disabled"}).Expect(t, http.StatusOK)
	many := make([]string, 257)
	for i := range many {
		many[i] = store.NewID()
	}
	of := func(ids ...string) map[string]any { return map[string]any{"participants": ids} }
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "no participants", As: anna, Method: "POST", Path: "/v1/chats", Body: map[string]any{}, Status: 400, Contains: []string{`"participants"`}},
		{Name: "only the caller", As: anna, Method: "POST", Path: "/v1/chats", Body: of(anna.UserID), Status: 400, Contains: []string{"At least one other participant"}},
		{Name: "invalid id", As: anna, Method: "POST", Path: "/v1/chats", Body: of("beat"), Status: 400, Contains: []string{`"participants.0"`}},
		{Name: "unknown user", As: anna, Method: "POST", Path: "/v1/chats", Body: of(store.NewID()), Status: 400,
			Contains: []string{`"participants.0":"There is no such record."`}},
		{Name: "user who is not active", As: anna, Method: "POST", Path: "/v1/chats", Body: of(beat.UserID), Status: 400, Contains: []string{`"participants.0"`}},
		{Name: "too many", As: anna, Method: "POST", Path: "/v1/chats", Body: of(many...), Status: 400, Contains: []string{"At most 256"}},
		{Name: "too many with the caller", As: anna, Method: "POST", Path: "/v1/chats", Body: of(many[:256]...), Status: 400, Contains: []string{"At most 256"}},
		{Name: "metadata is not an object", As: anna, Method: "POST", Path: "/v1/chats",
			Body: map[string]any{"participants": []string{store.NewID()}, "metadata": 1}, Status: 400, Contains: []string{`"metadata"`}},
		{Name: "no chat was created", As: anna, Method: "GET", Path: "/v1/chats", Status: 200, Contains: []string{`[]`}},
	})
}

func TestCreate_ReturnsTheExistingDirectChat(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Advisor), s.User(access.Customer)
	first := open(t, anna, beat)
	post(t, anna, first.ID, "Hallo")
	keyed := beat.With("Idempotency-Key", "one")
	for range 2 {
		var second chat
		keyed.Do("POST", "/v1/chats", with(anna)).Expect(t, http.StatusOK).Into(t, &second)
		if second.ID != first.ID || second.UnreadCount != 1 || second.LastMessage == nil {
			t.Errorf("got %+v, want the first chat as the second user sees it", second)
		}
	}
}

func TestCreate_CreatesOneDirectChatDespiteParallelRequests(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Advisor), s.User(access.Customer)
	var wait sync.WaitGroup
	var mu sync.Mutex
	ids, made := map[string]int{}, 0
	for i := range 64 {
		wait.Go(func() {
			from, to := anna, beat
			if i%2 == 1 {
				from, to = beat, anna
			}
			answer := from.Do("POST", "/v1/chats", with(to))
			mu.Lock()
			defer mu.Unlock()
			ids[answer.JSON(t)["id"].(string)]++
			if answer.Status == http.StatusCreated {
				made++
			}
		})
	}
	wait.Wait()
	if len(ids) != 1 || made != 1 {
		t.Errorf("got %d chats, %d of them new, want one", len(ids), made)
	}
}

func TestList_OrdersByLatestActivity(t *testing.T) {
	s := servertest.Start(t)
	anna, beat, carla := s.User(access.Advisor), s.User(access.Customer), s.User(access.Customer)
	var ids []string
	for _, others := range [][]*servertest.Client{{beat}, {carla}, {beat, carla}} {
		s.Clock.Advance(1_000_000)
		ids = append(ids, open(t, anna, others...).ID)
	}
	s.Clock.Advance(1_000_000)
	post(t, beat, ids[0], "Hallo")
	order := func(as *servertest.Client, query string) []string {
		var list []chat
		as.Do("GET", "/v1/chats"+query, nil).Expect(t, http.StatusOK).Into(t, &list)
		got := []string{}
		for _, c := range list {
			got = append(got, c.ID)
		}
		return got
	}
	for query, want := range map[string][]string{"": {ids[0], ids[2], ids[1]}, "?limit=2": {ids[0], ids[2]}, "?limit=2&offset=2": {ids[1]}} {
		if got := order(anna, query); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", query, got, want)
		}
	}
	if got := order(s.Admin(), ""); len(got) != 0 {
		t.Errorf("the administrator's list has %v, want none", got)
	}
	for _, query := range []string{"?limit=0", "?limit=1001", "?offset=-1", "?limit=x"} {
		anna.Do("GET", "/v1/chats"+query, nil).Expect(t, http.StatusBadRequest)
	}
}

func TestGet_SupportsConditionalRequests(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Advisor), s.User(access.Customer)
	c := open(t, anna, beat)
	path := "/v1/chats/" + c.ID
	etag := func(as *servertest.Client) string {
		return as.Do("GET", path, nil).Expect(t, http.StatusOK).Header.Get("ETag")
	}
	same := func(as *servertest.Client, tag string) bool {
		return as.With("If-None-Match", tag).Do("GET", path, nil).Status == http.StatusNotModified
	}
	a := etag(anna)
	if !same(anna, a) {
		t.Error("the unchanged chat was sent again")
	}
	post(t, beat, c.ID, "Hallo")
	if same(anna, a) {
		t.Error("a new message did not change the ETag")
	}
	a = etag(anna)
	read(t, anna, c.ID)
	if same(anna, a) {
		t.Error("reading by the caller did not change the ETag")
	}
	b := etag(beat)
	read(t, beat, c.ID)
	if same(beat, b) {
		t.Error("reading by the other user did not change the ETag")
	}
}

// A customer opens no chat that looks like one with the bank to another customer, in whatever way they try.
func TestCreate_ASupportChatIsWithTheBank(t *testing.T) {
	s := servertest.Start(t)
	anna, beat, carla, victim := s.User(access.Advisor), s.User(access.Customer), s.User(access.Customer), s.User(access.Customer)
	support := func(with ...*servertest.Client) servertest.Body {
		ids := []string{}
		for _, one := range with {
			ids = append(ids, one.UserID)
		}
		return servertest.Body{"participants": ids, "metadata": map[string]any{"support": true}}
	}
	for name, body := range map[string]servertest.Body{
		"alone":           support(victim),
		"beside a staff":  support(anna, victim),
		"named after one": support(beat, victim),
	} {
		got := beat.Do("POST", "/v1/chats", body)
		if got.Status != http.StatusBadRequest || !strings.Contains(got.Body, "Only members of staff") {
			t.Errorf("%s: got %d %s, want 400", name, got.Status, got.Body)
		}
	}
	if got := victim.Do("GET", "/v1/chats", nil).Expect(t, http.StatusOK); got.Body != "[]" {
		t.Errorf("the victim sees %s", got.Body)
	}

	// With staff it works, and no others are brought in; staff may do so, and may begin one with a customer.
	own := beat.Create("/v1/chats", support(anna))
	beat.Do("POST", "/v1/chats/"+own+"/participants", map[string]any{"userId": victim.UserID}).ExpectError(t, http.StatusConflict, "chats.fixed_participants")
	anna.Do("POST", "/v1/chats/"+own+"/participants", map[string]any{"userId": carla.UserID}).Expect(t, http.StatusCreated)
	carla.Do("POST", "/v1/chats/"+own+"/participants", map[string]any{"userId": victim.UserID}).ExpectError(t, http.StatusConflict, "chats.fixed_participants")
	anna.Create("/v1/chats", support(victim))
	beat.Create("/v1/chats", map[string]any{"participants": []string{carla.UserID}, "metadata": map[string]any{"support": "true"}}) // no boolean: direct
}
