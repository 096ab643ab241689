package notifications

import (
	"context"
	"fmt"

	"kontor/modules/kit/event"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/sse"
	"kontor/store"
)

// Chats provides the messages that frames carry.
type Chats interface {
	// FrameMessages returns, by id, those of the messages that the user may read as a participant of their chats.
	FrameMessages(ctx context.Context, q store.Querier, userID string, ids []string) (map[string]event.ChatMessage, error)
	// ReadableMessages returns the messages by id, with the participants of their chats.
	ReadableMessages(ctx context.Context, q store.Querier, ids []string) (map[string]event.ReadableMessage, error)
}

// maxFrameText is how many characters of a message a frame carries. Streams keep frames in memory until their clients
// have read them; clients read the rest of a long message from the chat.
const maxFrameText = 2000

// readMessagesEndpoint is the endpoint that a caller must be allowed to call to get the texts of messages in frames.
const readMessagesEndpoint = "GET /v1/chats/{id}/messages"

// chatMember is the member chat of a frame: the message that the notification is about.
type chatMember struct {
	ChatID    string     `json:"chat_id"`
	MessageID string     `json:"message_id"`
	Type      string     `json:"type"`
	Text      string     `json:"text"`
	Truncated bool       `json:"truncated,omitzero"` // text holds only the beginning of the message
	CreatedBy string     `json:"created_by"`
	CreatedAt store.Time `json:"created_at"`
}

// peopleByID is the member people of a frame.
type peopleByID map[string]endpoint.Person

// frameMessage is a chat message with what is known of its author.
type frameMessage struct {
	event.ChatMessage
	people peopleByID
}

// audience says what a reader may see in a frame. Frames of one notification for readers with the same audience differ
// only in the ids of the copies.
type audience struct {
	language string
	messages bool // chat messages
	staff    bool // user names
}

// audienceOf returns what the caller of a stream may see, from memory alone. Streams of other notifications than those
// about messages differ only in their languages.
func (s *Service) audienceOf(stream *sse.Stream, aboutMessage bool) audience {
	a := audience{language: stream.Language}
	if aboutMessage {
		caller := s.callerOf(stream)
		a.messages, a.staff = caller.MayCall(readMessagesEndpoint), caller.Staff()
	}
	return a
}

// addMessage adds the members chat and people for an audience.
func (s *Service) addMessage(data *frameData, m *frameMessage, a audience) {
	if m == nil || !a.messages {
		return
	}
	kind, text := "text", m.Text
	if m.TextKey != "" {
		kind, text = "system", s.texts.Text(a.language, m.TextKey, nil)
	}
	data.Chat = &chatMember{ChatID: m.ChatID, MessageID: m.ID, Type: kind, CreatedBy: m.CreatedBy, CreatedAt: store.TimeOf(m.CreatedAt)}
	data.Chat.Text, data.Chat.Truncated = truncate(text, maxFrameText)
	data.People = make(peopleByID, len(m.people))
	if person, known := m.people[m.CreatedBy]; known {
		if !a.staff {
			person.UserName = ""
		}
		data.People[m.CreatedBy] = person
	}
}

// truncate returns the first n characters of a text, and whether there are more.
func truncate(text string, n int) (string, bool) {
	for i := range text {
		if n--; n < 0 {
			return text[:i], true
		}
	}
	return text, false
}

// liveMessage returns the message of an event for the frames of its recipients, or nil. It looks the author up once for all
// of them, and only if one of them has an open stream.
func (s *Service) liveMessage(parent parentEvent, recipients []string) *frameMessage {
	if parent.chatMessage == nil || s.Peers.Directory == nil || !s.hub.Connected(recipients) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()
	people, err := s.peopleForStaff(ctx, parent.chatMessage.CreatedBy)
	if err != nil {
		s.options.Log.Warn("the frames of a message lack the name of its author", "cause", err)
	}
	return &frameMessage{ChatMessage: *parent.chatMessage, people: people}
}

// peopleForStaff looks users up with the user names that only staff may see: frames for staff and for others are made of the
// same look-up. [Service.addMessage] removes the user names for others.
func (s *Service) peopleForStaff(ctx context.Context, ids ...string) (peopleByID, error) {
	staff := access.Caller{Roles: []string{access.Administrator}, UserID: store.NilID}.WithPolicy(s.options.Policy.Load())
	return s.Peers.Directory.People(access.With(ctx, staff), ids)
}

// replayedMessages reads the messages that copies of one user are about, with their authors, by the ids of the messages.
// Messages that the user may no longer read are missing.
func (s *Service) replayedMessages(ctx context.Context, stream *sse.Stream, copies []Listed) (map[string]*frameMessage, error) {
	var ids []string
	for i := range copies {
		if id := copies[i].chatMessageID; id != "" {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 || s.Peers.Chats == nil || !s.callerOf(stream).MayCall(readMessagesEndpoint) {
		return nil, nil
	}
	messages, err := s.Peers.Chats.FrameMessages(ctx, s.db, stream.User, ids)
	if err != nil {
		return nil, err
	}
	authors := make([]string, 0, len(messages))
	for _, m := range messages {
		authors = append(authors, m.CreatedBy)
	}
	people, err := s.peopleForStaff(ctx, unique(authors)...)
	if err != nil {
		return nil, fmt.Errorf("look up the authors of messages: %w", err)
	}
	found := make(map[string]*frameMessage, len(messages))
	for id, m := range messages {
		found[id] = &frameMessage{ChatMessage: m, people: people}
	}
	return found, nil
}
