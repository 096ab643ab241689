package chats_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

func TestParticipants_JoinAndLeaveWithASystemMessage(t *testing.T) {
	s := servertest.Start(t)
	anna, beat, carla, dario := s.User(access.Advisor), s.User(access.Customer), s.User(access.Customer), s.User(access.Customer)
	c := open(t, anna, beat, carla)
	post(t, anna, c.ID, "before")
	path := "/v1/chats/" + c.ID

	var joined chat
	beat.Do("POST", path+"/participants", with(dario)).Expect(t, http.StatusCreated).Into(t, &joined)
	if !slices.Contains(joined.Participants, dario.UserID) || joined.LastMessage.Type != "system" || joined.LastMessage.SenderID != beat.UserID {
		t.Errorf("got %+v", joined)
	}
	if got := get(t, dario, c.ID); got.UnreadCount != 1 || contents(messages(t, dario, c.ID, "?limit=5")) == "" {
		t.Errorf("a new participant has %d unread, want only the system message", got.UnreadCount)
	}
	answer := dario.With("Accept-Language", "de").Do("GET", path+"/messages?limit=1", nil)
	if !strings.Contains(answer.Body, "Jemand ist dem Chat beigetreten.") || !strings.Contains(answer.Body, `"event":"joined","userId":"`+dario.UserID) {
		t.Errorf("got %s", answer.Body)
	}

	if done := carla.Do("DELETE", path+"/participants/"+carla.UserID, nil).Expect(t, http.StatusOK); done.JSON(t)["message"] != "You have left the chat." {
		t.Errorf("got %s", done.Body)
	}
	if got := messages(t, anna, c.ID, "?limit=1")[0]; got.Content != "Somebody has left the chat." || got.SenderID != carla.UserID {
		t.Errorf("got %+v", got)
	}
	carla.Do("GET", path, nil).Expect(t, http.StatusForbidden)
	carla.Do("POST", path+"/messages", map[string]any{"content": "x"}).Expect(t, http.StatusForbidden)

	anna.Do("DELETE", path+"/participants/"+dario.UserID, nil).Expect(t, http.StatusOK)
	if got := get(t, anna, c.ID); got.Type != "group" || len(got.Participants) != 2 || got.LastMessage.Content != "Somebody has been removed from the chat." {
		t.Errorf("got %+v, want a group of two", got)
	}
	anna.Do("POST", path+"/participants", map[string]any{"userId": carla.UserID}).Expect(t, http.StatusCreated)
	if got := get(t, carla, c.ID); got.UnreadCount != 1 {
		t.Errorf("a returning participant has %d unread, want 1", got.UnreadCount)
	}
	anna.Do("POST", path+"/participants", map[string]any{"user_id": dario.UserID}).Expect(t, http.StatusCreated)
}

func TestParticipants_RejectInvalidChanges(t *testing.T) {
	s := servertest.Start(t)
	anna, beat, carla, stranger := s.User(access.Advisor), s.User(access.Customer), s.User(access.Customer), s.User(access.Customer)
	direct, group := "/v1/chats/"+open(t, anna, beat).ID+"/participants", "/v1/chats/"+open(t, anna, beat, carla).ID+"/participants"
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "adding to a direct chat", As: anna, Method: "POST", Path: direct, Body: with(carla), Status: 409, Contains: []string{`"chats.fixed_participants"`}},
		{Name: "leaving a direct chat", As: anna, Method: "DELETE", Path: direct + "/" + anna.UserID, Status: 409, Contains: []string{`"chats.fixed_participants"`}},
		{Name: "adding to a direct chat without access", As: stranger, Method: "POST", Path: direct, Body: with(stranger), Status: 403},
		{Name: "adding oneself to a chat of others", As: stranger, Method: "POST", Path: group, Body: with(stranger), Status: 403},
		{Name: "adding a participant", As: anna, Method: "POST", Path: group, Body: with(stranger, beat), Status: 409, Contains: []string{`"chats.participant_exists"`, beat.UserID}},
		{Name: "adding an unknown user", As: anna, Method: "POST", Path: group, Body: map[string]any{"participants": []string{stranger.UserID, store.NewID()}}, Status: 400,
			Contains: []string{`"participants.1"`}, Excludes: []string{`"participants.0"`}},
		{Name: "adding nobody", As: anna, Method: "POST", Path: group, Body: map[string]any{}, Status: 400, Contains: []string{`"participants"`}},
		{Name: "removing another user without being the creator", As: beat, Method: "DELETE", Path: group + "/" + carla.UserID, Status: 403},
		{Name: "removing a user who is not a participant", As: anna, Method: "DELETE", Path: group + "/" + stranger.UserID, Status: 404, Contains: []string{`"chats.participant_not_found"`}},
		{Name: "leaving a chat of others", As: stranger, Method: "DELETE", Path: group + "/" + stranger.UserID, Status: 403},
		{Name: "removing as an administrator", As: s.Admin(), Method: "DELETE", Path: group + "/" + carla.UserID, Status: 200},
		{Name: "adding as an administrator", As: s.Admin(), Method: "POST", Path: group, Body: with(carla), Status: 201},
		{Name: "an unknown chat", As: anna, Method: "POST", Path: "/v1/chats/" + store.NewID() + "/participants", Body: with(carla), Status: 404, Contains: []string{`"chats.chat_not_found"`}},
	})
}

func TestParticipants_AreAtMost256(t *testing.T) {
	s := servertest.Start(t)
	anna, last := s.User(access.Advisor), s.User(access.Customer)
	ids := people(t, s, 255)
	answer := anna.Do("POST", "/v1/chats", map[string]any{"participants": ids}).Expect(t, http.StatusCreated)
	full := anna.Do("POST", "/v1/chats/"+answer.JSON(t)["id"].(string)+"/participants", with(last))
	if full.Status != http.StatusConflict || full.JSON(t)["code"] != "chats.too_many_participants" || !strings.Contains(full.Body, "256") {
		t.Errorf("got %d %s", full.Status, full.Body)
	}
}

// people creates active users without credentials.
func people(t testing.TB, s *servertest.Server, n int) []string {
	t.Helper()
	s.SkipRecordCheck()
	ids := make([]string, n)
	err := s.DB.InTx(context.Background(), func(tx *store.Tx) error {
		for i := range ids {
			ids[i] = store.NewID()
			if _, err := tx.Exec(context.Background(), `INSERT INTO users (id, status, language, created_at, created_by, modified_at, modified_by)
				VALUES ($1, 'active', 'en', $2, $3, $2, $3)`, ids[i], tx.Now(), store.NilID); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestAccess_IsForParticipants(t *testing.T) {
	s := servertest.Start(t)
	creator, participant, other, advisor, registrant := s.User(access.Customer), s.User(access.Customer), s.User(access.Customer), s.User(access.Advisor), s.User(access.Registrant)
	id := open(t, creator, participant, s.User(access.Customer)).ID
	path := "/v1/chats/" + id
	post(t, creator, id, "a secret")
	hello := map[string]any{"content": "Hallo"}
	for name, c := range map[string]struct {
		as                                       *servertest.Client
		get, list, write, mark, add, removeOther int
	}{
		"creator":       {creator, 200, 200, 201, 200, 409, 200},
		"participant":   {participant, 200, 200, 201, 200, 409, 403},
		"another user":  {other, 403, 403, 403, 403, 403, 403},
		"an advisor":    {advisor, 403, 403, 403, 403, 403, 403},
		"administrator": {s.Admin(), 200, 200, 403, 403, 409, 200},
		"a registrant":  {registrant, 403, 403, 403, 403, 403, 403},
		"nobody":        {s.Anonymous(), 401, 401, 401, 401, 401, 401},
	} {
		t.Run(name, func(t *testing.T) {
			victim := people(t, s, 1)[0]
			creator.Do("POST", path+"/participants", map[string]any{"userId": victim}).Expect(t, http.StatusCreated)
			servertest.Run(t, s, []servertest.Scenario{
				{Name: "reads", As: c.as, Method: "GET", Path: path, Status: c.get},
				{Name: "reads messages", As: c.as, Method: "GET", Path: path + "/messages", Status: c.list},
				{Name: "writes", As: c.as, Method: "POST", Path: path + "/messages", Body: hello, Status: c.write},
				{Name: "marks read", As: c.as, Method: "POST", Path: path + "/read", Status: c.mark},
				{Name: "adds a participant", As: c.as, Method: "POST", Path: path + "/participants", Body: with(participant), Status: c.add},
				{Name: "removes another", As: c.as, Method: "DELETE", Path: path + "/participants/" + victim, Status: c.removeOther},
			})
			if answer := c.as.Do("GET", path, nil); c.get != 200 && strings.Contains(answer.Body, participant.UserID) {
				t.Errorf("the error shows the chat: %s", answer.Body)
			}
		})
	}
	for _, verb := range [][2]string{{"GET", ""}, {"GET", "/messages"}, {"POST", "/messages"}, {"POST", "/read"}, {"POST", "/participants"}, {"DELETE", "/participants/" + other.UserID}} {
		body := map[string]any{"content": "x", "userId": other.UserID}
		if answer := other.Do(verb[0], "/v1/chats/"+store.NewID()+verb[1], body); answer.Status != 404 || answer.JSON(t)["code"] != "chats.chat_not_found" {
			t.Errorf("%s of a missing chat: got %d %s", verb, answer.Status, answer.Body)
		}
	}
}

func TestAccess_ToReadByAGrant(t *testing.T) {
	s := servertest.Start(t)
	creator, auditor := s.User(access.Customer), s.User(access.Advisor)
	id := open(t, creator, s.User(access.Customer)).ID
	post(t, creator, id, "Hallo")
	path := "/v1/chats/" + id
	s.Admin().Do("POST", "/v1/rbac/grants", map[string]any{"user_id": auditor.UserID, "rec_type": "chats", "permissions": []string{"read"}, "rec_id": id}).
		Expect(t, http.StatusCreated)
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "reads", As: auditor, Method: "GET", Path: path, Status: 200, Contains: []string{`"unreadCount":0`}},
		{Name: "lists", As: auditor, Method: "GET", Path: "/v1/chats", Status: 200, Contains: []string{id}},
		{Name: "reads messages", As: auditor, Method: "GET", Path: path + "/messages", Status: 200, Contains: []string{"Hallo"}},
		{Name: "writes", As: auditor, Method: "POST", Path: path + "/messages", Body: map[string]any{"content": "x"}, Status: 403},
		{Name: "marks as read", As: auditor, Method: "POST", Path: path + "/read", Status: 403},
		{Name: "the check names the creator as owner", As: creator, Method: "POST", Path: "/v1/rbac/check",
			Body:   map[string]any{"checks": []map[string]any{{"rec_type": "chats", "permission": "update", "rec_id": id}, {"rec_type": "chats", "permission": "delete", "rec_id": id}}},
			Status: 200, Contains: []string{`{"allowed":true,"source":"owner","source_id":"` + id, `"allowed":false`}},
	})
}
