package chats_test

import (
	"context"
	"slices"
	"testing"

	"kontor/modules/bank/chats"
	"kontor/modules/kit/event"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/servertest"
	"kontor/store"
)

// recorder records calls to the module notifications.
type recorder struct {
	events []event.Event
	marked []string
	fails  bool
}

func (r *recorder) Notify(_ context.Context, _ *store.Tx, n event.Event) error {
	if r.fails {
		return apierr.Unavailable
	}
	r.events = append(r.events, n)
	return nil
}

func (r *recorder) MarkRead(_ context.Context, _ *store.Tx, userID string, t access.RecordType, recordID string) error {
	r.marked = append(r.marked, userID+" "+t.Name+" "+recordID)
	return nil
}

func TestNotifications_GoToOtherParticipantsAndAreMarkedAsRead(t *testing.T) {
	s := servertest.Start(t)
	users := people(t, s, 3)
	recorded := &recorder{}
	module := chats.New(s.DB, recorded, s.Users, s.Texts)
	as := func(userID string) context.Context {
		return access.With(t.Context(), &access.Caller{UserID: userID})
	}
	create := chats.CreateInput{Participants: users}
	post := chats.PostInput{Content: "x"}
	if err := validated(&create); err != nil {
		t.Fatal(err)
	}
	made, err := module.Create(as(users[0]), create)
	if err != nil {
		t.Fatal(err)
	}
	post.ID = made.Body.(chats.Chat).ID
	if err := validated(&post); err != nil {
		t.Fatal(err)
	}
	if _, err := module.Post(as(users[1]), post); err != nil {
		t.Fatal(err)
	}
	if len(recorded.events) != 1 {
		t.Fatalf("got %d events, want one", len(recorded.events))
	}
	n := recorded.events[0]
	if n.Kind != event.MessageReceived || n.Type != access.Chats || n.RecordID != post.ID || !slices.Equal(n.Recipients, []string{users[0], users[2]}) {
		t.Errorf("got %+v", n)
	}
	if _, err := module.MarkRead(as(users[2]), chats.OneInput{ID: post.ID}); err != nil {
		t.Fatal(err)
	}
	if want := users[2] + " chats " + post.ID; !slices.Equal(recorded.marked, []string{want}) {
		t.Errorf("marked %v, want %s", recorded.marked, want)
	}

	recorded.fails = true
	if _, err := module.Post(as(users[1]), post); err == nil {
		t.Error("a message was written without its notifications")
	}
	got, err := module.Get(as(users[0]), chats.OneInput{ID: post.ID})
	if err != nil || got.UnreadCount != 1 {
		t.Errorf("got %d unread and %v, want the one message that was notified of", got.UnreadCount, err)
	}
}

func TestMarkRead_MarksTheNotificationsOfTheChat(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Advisor), s.User(access.Customer)
	c, other := open(t, anna, beat), open(t, anna, beat, s.User(access.Customer))
	post(t, anna, c.ID, "one")
	post(t, anna, c.ID, "two")
	post(t, anna, other.ID, "three")
	unread := func() any {
		return beat.Do("GET", "/v1/notifications?search.read=false&search.event=message_received", nil).Expect(t, 200).JSON(t)["total"]
	}
	if got := unread(); got != 3.0 {
		t.Errorf("got %v unread notifications, want 3", got)
	}
	read(t, beat, c.ID)
	if got := unread(); got != 1.0 {
		t.Errorf("got %v unread notifications after reading one chat, want that of the other", got)
	}
	beat.Do("DELETE", "/v1/chats/"+other.ID+"/participants/"+beat.UserID, nil).Expect(t, 200)
	if got := unread(); got != 0.0 {
		t.Errorf("got %v unread notifications of a chat that the user has left", got)
	}
}
