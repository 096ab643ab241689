package chats_test

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kontor/modules/bank/chats"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/servertest"
	"kontor/store/testenv"
)

// model is the simplest model of a chat: the sender of each message, and the users who have not read it.
type model struct {
	senders []string
	in      []string                // who takes part
	unread  map[string]map[int]bool // by user: the messages that they have not read
}

func (m *model) write(sender string) {
	m.senders = append(m.senders, sender)
	for _, userID := range m.in {
		if userID != sender {
			m.unread[userID][len(m.senders)-1] = true
		}
	}
}

func (m *model) join(userID string) {
	m.in = append(m.in, userID)
	m.unread[userID] = map[int]bool{}
}

func (m *model) leave(userID string) {
	m.in = slices.DeleteFunc(m.in, func(id string) bool { return id == userID })
	delete(m.unread, userID)
}

// In any order of operations, unread counts equal those of the model, in the chat and in the list. The readers of the last
// message are exactly the users who have read everything.
func TestUnread_EqualsTheModel(t *testing.T) {
	testenv.Checks(t, 25, 100, 1000)
	s := servertest.Start(t)
	users := people(t, s, 4)
	as := func(userID string) context.Context {
		caller := access.Caller{UserID: userID}.WithPolicy(access.NewPolicy(access.PolicyData{}))
		return access.With(context.Background(), caller)
	}
	rapid.Check(t, func(r *rapid.T) {
		m := &model{unread: map[string]map[int]bool{}}
		id := opened(r, s, as, users[:3])
		for _, userID := range users[:3] {
			m.join(userID)
		}
		one := func(label string, from []string) string { return rapid.SampledFrom(from).Draw(r, label) }
		r.Repeat(map[string]func(*rapid.T){
			"post": func(r *rapid.T) {
				userID := one("who writes", m.in)
				in := chats.PostInput{ID: id, Content: "x"}
				ok(r, validated(&in))
				_, err := s.Chats.Post(as(userID), in)
				ok(r, err)
				m.write(userID)
			},
			"read": func(r *rapid.T) {
				userID := one("who reads", m.in)
				_, err := s.Chats.MarkRead(as(userID), chats.OneInput{ID: id})
				ok(r, err)
				m.unread[userID] = map[int]bool{}
			},
			"join": func(r *rapid.T) {
				var out []string
				for _, userID := range users {
					if !slices.Contains(m.in, userID) {
						out = append(out, userID)
					}
				}
				if len(out) == 0 {
					r.Skip("all take part")
				}
				userID, by := one("who joins", out), one("who adds him", m.in)
				in := chats.AddInput{ID: id, UserID: userID}
				ok(r, validated(&in))
				_, err := s.Chats.AddParticipants(as(by), in)
				ok(r, err)
				m.join(userID)
				m.write(by)
			},
			"leave": func(r *rapid.T) {
				if len(m.in) == 1 {
					r.Skip("the last one stays")
				}
				userID := one("who leaves", m.in)
				_, err := s.Chats.RemoveParticipant(as(userID), chats.RemoveInput{ID: id, UserID: userID})
				ok(r, err)
				m.leave(userID)
				m.write(userID)
			},
			"": func(r *rapid.T) { compare(r, s, as, id, m) },
		})
	})
}

func opened(r *rapid.T, s *servertest.Server, as func(string) context.Context, users []string) string {
	in := chats.CreateInput{Participants: users}
	ok(r, validated(&in))
	made, err := s.Chats.Create(as(users[0]), in)
	ok(r, err)
	return made.Body.(chats.Chat).ID
}

func compare(r *rapid.T, s *servertest.Server, as func(string) context.Context, id string, m *model) {
	latest := 1 // the clock does not advance; of chats with equal times the newest is first
	for i, userID := range m.in {
		list := chats.ListInput{Limit: &latest}
		ok(r, validated(&list))
		listed, err := s.Chats.List(as(userID), list)
		ok(r, err)
		all := listed.Body.([]chats.ListedChat)
		want := int64(len(m.unread[userID]))
		if len(all) != 1 || all[0].ID != id || all[0].UnreadCount != want {
			r.Fatalf("the list of %s has %+v, want %d unread", userID, all, want)
		}
		got := all[0].Chat
		if i == 0 {
			got, err = s.Chats.Get(as(userID), chats.OneInput{ID: id})
			ok(r, err)
			if got.UnreadCount != want {
				r.Fatalf("%s has %d unread, want %d", userID, got.UnreadCount, want)
			}
		}
		if got.LastMessage == nil {
			continue
		}
		// Only the last sender may have nothing unread without having read the last message.
		last := len(m.senders) - 1
		if reads := slices.Contains(got.LastMessage.ReadBy, userID); reads && want > 0 || !reads && want == 0 && m.senders[last] != userID {
			r.Fatalf("the last message is read by %v, %s has %d unread", got.LastMessage.ReadBy, userID, want)
		}
	}
}

// validated runs the validation of a request.
func validated(in interface{ Validate(v *apierr.Fields) }) error {
	var problems apierr.Fields
	in.Validate(&problems)
	return problems.Err()
}

func ok(r *rapid.T, err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}
