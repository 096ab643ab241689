package notifications_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

// messageFrame is what the tests compare of a frame about a message.
type messageFrame struct {
	Event string `json:"event"`
	Chat  *struct {
		ChatID    string `json:"chat_id"`
		MessageID string `json:"message_id"`
		Type      string `json:"type"`
		Text      string `json:"text"`
		Truncated bool   `json:"truncated"`
		CreatedBy string `json:"created_by"`
		CreatedAt string `json:"created_at"`
	} `json:"chat"`
	People map[string]map[string]any `json:"people"`
}

func (f frame) message(t testing.TB) messageFrame {
	t.Helper()
	var m messageFrame
	if err := json.Unmarshal([]byte(f.Data), &m); err != nil {
		t.Fatalf("data %q: %v", f.Data, err)
	}
	return m
}

// withoutSentAt returns the members of a frame but for sent_at, which is the time of the first write.
func (f frame) withoutSentAt(t testing.TB) map[string]any {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal([]byte(f.Data), &members); err != nil {
		t.Fatal(err)
	}
	delete(members, "sent_at")
	return members
}

// newChat creates a group chat or, with one other user, a direct chat.
func newChat(t testing.TB, creator *servertest.Client, others ...*servertest.Client) string {
	t.Helper()
	var ids []string
	for _, other := range others {
		ids = append(ids, other.UserID)
	}
	return creator.Create("/v1/chats", map[string]any{"participants": ids})
}

// postMessage posts a message and returns it as the API does.
func postMessage(t testing.TB, as *servertest.Client, chatID, text string) map[string]any {
	t.Helper()
	return as.Do("POST", "/v1/chats/"+chatID+"/messages", map[string]any{"content": text}).Expect(t, http.StatusCreated).JSON(t)
}

func TestStream_CarriesTheMessageToTheOtherParticipantsOnly(t *testing.T) {
	s := servertest.Start(t)
	anna, beat, carla, stranger := s.User(access.Advisor), s.User(access.Customer), s.User(access.Advisor), s.User(access.Advisor)
	anna.Do("PATCH", "/v1/users/"+anna.UserID, map[string]any{"display_name": "Anna Keller"}).Expect(t, http.StatusOK)
	chatID := newChat(t, anna, beat, carla)
	lines := map[*servertest.Client]*streamClient{}
	for _, user := range []*servertest.Client{anna, beat, carla, stranger} {
		lines[user] = open(t, s.Address, "GET", user.Token)
		lines[user].expect("open")
	}
	posted := postMessage(t, anna, chatID, "Grüezi \"Beat\"\nwie geht's?")
	for reader, staff := range map[*servertest.Client]bool{beat: false, carla: true} {
		got := lines[reader].expect("message").message(t)
		if got.Event != "message_received" || got.Chat == nil {
			t.Fatalf("got %+v, want a message", got)
		}
		if c := got.Chat; c.ChatID != chatID || c.MessageID != posted["id"] || c.Text != posted["content"] || c.Truncated || c.Type != "text" ||
			c.CreatedBy != anna.UserID || c.CreatedAt != posted["createdAt"] {
			t.Errorf("got %+v, want %v", c, posted)
		}
		if len(got.People) != 1 || got.People[anna.UserID] == nil {
			t.Fatalf("got people %v, want Anna alone", got.People)
		}
		if author := got.People[anna.UserID]; author["display_name"] != "Anna Keller" || author["staff"] != true {
			t.Errorf("got author %v", author)
		}
		if _, shown := got.People[anna.UserID]["user_name"]; shown != staff {
			t.Errorf("the reader is staff: %t; the user name is shown: %t", staff, shown)
		}
	}
	expectNothing(t, s, anna.UserID, lines[anna])
	expectNothing(t, s, stranger.UserID, lines[stranger])
}

func TestStream_ReplaysMessagesAsItSentThem(t *testing.T) {
	s := servertest.Start(t)
	anna, beat, carla := s.User(access.Advisor), s.User(access.Customer), s.User(access.Customer)
	chatID := newChat(t, anna, beat)
	group := newChat(t, anna, beat, carla)
	first := notified(t, s, customerEvent(beat.UserID))[0]
	live := open(t, s.Address, "GET", beat.Token, "Accept-Language", "de")
	live.expect("open")
	postMessage(t, anna, chatID, "one")
	postMessage(t, anna, group, strings.Repeat("ü", 2001))
	postMessage(t, carla, group, "three")
	carla.Do("DELETE", "/v1/chats/"+group+"/participants/"+carla.UserID, nil).Expect(t, http.StatusOK)

	again := open(t, s.Address, "GET", beat.Token, "Accept-Language", "de", "Last-Event-ID", first)
	again.expect("open")
	for i, text := range []string{"one", strings.Repeat("ü", 2000), "three", "Jemand hat den Chat verlassen."} {
		sent, replayed := live.expect("message"), again.expect("message")
		if sent.ID != replayed.ID || !reflect.DeepEqual(sent.withoutSentAt(t), replayed.withoutSentAt(t)) {
			t.Errorf("frame %d was sent as\n%+v and replayed as\n%+v", i, sent, replayed)
		}
		if got := sent.message(t).Chat; got == nil || got.Text != text || got.Truncated != (i == 1) || (got.Type == "system") != (i == 3) {
			t.Errorf("frame %d: got %+v, want %q", i, got, text)
		}
	}
	expectNothing(t, s, beat.UserID, live, again)
}

func TestStream_HidesMessagesFromFormerParticipants(t *testing.T) {
	s := servertest.Start(t)
	anna, beat, carla := s.User(access.Advisor), s.User(access.Customer), s.User(access.Customer)
	chatID := newChat(t, anna, beat, carla)
	first := notified(t, s, customerEvent(beat.UserID))[0]
	live := open(t, s.Address, "GET", beat.Token)
	live.expect("open")
	postMessage(t, anna, chatID, "before")
	if got := live.expect("message").message(t).Chat; got == nil || got.Text != "before" {
		t.Errorf("a participant got %+v", got)
	}
	anna.Do("DELETE", "/v1/chats/"+chatID+"/participants/"+beat.UserID, nil).Expect(t, http.StatusOK)
	postMessage(t, anna, chatID, "after")
	later := expectNothing(t, s, beat.UserID, live)

	again := open(t, s.Address, "GET", beat.Token, "Last-Event-ID", first)
	again.expect("open")
	if f := again.expect("message"); f.message(t).Chat != nil || strings.Contains(f.Data, "before") || strings.Contains(f.Data, anna.UserID) {
		t.Errorf("a former participant got %s", f.Data)
	}
	if f := again.expect("message"); f.ID != later {
		t.Errorf("a former participant got %s", f.Data)
	}
}

func TestStream_HidesMessagesWithoutTheRightToReadThem(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Advisor), s.User(access.Customer)
	chatID := newChat(t, anna, beat)
	first := notified(t, s, customerEvent(beat.UserID))[0]
	live := open(t, s.Address, "GET", beat.Token)
	live.expect("open")
	var grant string
	const selectGrant = `SELECT id FROM grant_records WHERE role_id = $1 AND endpoint = $2`
	if err := s.DB.QueryRow(t.Context(), selectGrant, access.Customer, "GET /v1/chats/{id}/messages").Scan(&grant); err != nil {
		t.Fatal(err)
	}
	s.Admin().Do("DELETE", "/v1/rbac/grants/"+grant, nil).Expect(t, http.StatusOK)
	beat.Do("GET", "/v1/chats/"+chatID+"/messages", nil).Expect(t, http.StatusForbidden)
	postMessage(t, anna, chatID, "confidential")
	again := open(t, s.Address, "GET", beat.Token, "Last-Event-ID", first)
	again.expect("open")
	for name, l := range map[string]*streamClient{"live": live, "replayed": again} {
		if f := l.expect("message"); f.message(t).Chat != nil || strings.Contains(f.Data, "confidential") {
			t.Errorf("%s: got %s", name, f.Data)
		}
	}
}

// The text of a message is stored in the chat alone: neither the event nor its notifications have a copy.
func TestNotify_DoesNotStoreTheTextOfAMessage(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Advisor), s.User(access.Customer)
	message := postMessage(t, anna, newChat(t, anna, beat), "a secret word")
	if got := count(t, s.DB, "notifications WHERE chat_message_id = $1 AND user_id = $2", message["id"], beat.UserID); got != 1 {
		t.Errorf("%d notifications name the message, want 1", got)
	}
	if got := count(t, s.DB, "notifications WHERE content LIKE '%secret%' OR content_low LIKE '%secret%' OR metadata LIKE '%secret%'"); got != 0 {
		t.Errorf("%d notifications hold the text", got)
	}
}

func TestPeople_AreTheRecipientsOfNotificationsAndDeliveries(t *testing.T) {
	s := servertest.Start(t)
	beat := s.User(access.Customer)
	beat.Do("PATCH", "/v1/users/"+beat.UserID, map[string]any{"display_name": "Beat Muster"}).Expect(t, http.StatusOK)
	id := notified(t, s, systemEvent(beat.UserID))[0]
	for name, answer := range map[string]servertest.Response{
		"list": beat.Do("GET", path, nil), "get": beat.Do("GET", path+"/"+id, nil), "deliveries": s.Admin().Do("GET", path+"/deliveries", nil),
		"mark as read": beat.Do("PATCH", path+"/"+id+"/read", map[string]any{"read": true}),
	} {
		var got messageFrame
		answer.Expect(t, http.StatusOK).Into(t, &got)
		if len(got.People) != 1 || got.People[beat.UserID]["display_name"] != "Beat Muster" {
			t.Errorf("%s: got %v, want Beat", name, got.People)
		}
	}
}
