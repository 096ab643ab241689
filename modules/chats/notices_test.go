package chats_test

import (
	"context"
	"slices"
	"testing"

	"kontor/modules/chats"
	"kontor/modules/kit/event"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/servertest"
	"kontor/store"
)

// ears remember what notifications were asked for.
type ears struct {
	notices []event.Event
	marked  []string
	deaf    bool
}

func (e *ears) Notify(_ context.Context, _ *store.Tx, n event.Event) error {
	if e.deaf {
		return apierr.Unavailable
	}
	e.notices = append(e.notices, n)
	return nil
}

func (e *ears) MarkRead(_ context.Context, _ *store.Tx, userID string, t access.RecordType, recordID string) error {
	e.marked = append(e.marked, userID+" "+t.Name+" "+recordID)
	return nil
}

func TestNotices_GoToTheOthersAndAreMarkedRead(t *testing.T) {
	s := servertest.Start(t)
	users := people(t, s, 3)
	heard := &ears{}
	module := chats.New(s.DB, heard, s.Texts)
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
	if len(heard.notices) != 1 {
		t.Fatalf("got %d notices, want one", len(heard.notices))
	}
	n := heard.notices[0]
	if n.Kind != event.MessageReceived || n.Type != access.Chats || n.RecordID != post.ID || !slices.Equal(n.Recipients, []string{users[0], users[2]}) {
		t.Errorf("got %+v", n)
	}
	if _, err := module.Read(as(users[2]), chats.OneInput{ID: post.ID}); err != nil {
		t.Fatal(err)
	}
	if want := users[2] + " chats " + post.ID; !slices.Equal(heard.marked, []string{want}) {
		t.Errorf("marked %v, want %s", heard.marked, want)
	}

	heard.deaf = true
	if _, err := module.Post(as(users[1]), post); err == nil {
		t.Error("a message was written that nobody is told of")
	}
	got, err := module.Get(as(users[0]), chats.OneInput{ID: post.ID})
	if err != nil || got.UnreadCount != 1 {
		t.Errorf("got %d unread and %v, want the one message that was told", got.UnreadCount, err)
	}
}

func TestRead_ClearsTheNotificationsOfTheChat(t *testing.T) {
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
		t.Errorf("got %v unread notifications of a chat that he has left", got)
	}
}
