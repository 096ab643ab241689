package chats

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/event"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Message is a message as the API shows it.
type Message struct {
	ID        string         `json:"id"`
	ChatID    string         `json:"chatId"`
	SenderID  string         `json:"senderId" doc:"Of a system message: who did what it tells."` // of a system message: who did what it tells
	Content   string         `json:"content" maxLength:"10000"`
	Type      MessageType    `json:"type" enum:"text,system"`
	Metadata  jsontext.Value `json:"metadata"`
	CreatedAt store.Time     `json:"createdAt"`
	ReadBy    []string       `json:"readBy" doc:"Participants who have read it."` // participants whose read position has come to the message

	seq int64
}

// MessageType tells what a user wrote from what Kontor tells.
type MessageType string

// The types of messages.
const (
	Text   MessageType = "text"
	System MessageType = "system"
)

// The texts of system messages, as keys of the locale files. Their metadata have the member event, with the last part of
// the key, and userId.
const (
	joined  = "joined"
	left    = "left"
	removed = "removed"
)

// Post writes a message and tells the other participants. It returns apierr.ChatNotFound and, for a caller who does not
// take part, apierr.NoAccess.
func (s *Service) Post(ctx context.Context, in PostInput) (Message, error) {
	m := Message{ID: store.NewID(), ChatID: in.ID, SenderID: access.From(ctx).UserID, Type: Text,
		Content: in.Content, Metadata: in.metadata, ReadBy: []string{}, CreatedAt: s.db.Now()}
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		c, err := participating(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		weight := records.Weight(m.Content, string(m.Metadata)) + int64(len(c.positions))*participantBytes
		if err := s.quota.Charge(ctx, tx, access.Chats, m.SenderID, 1, weight); err != nil {
			return err
		}
		if err := s.write(ctx, tx, c, &m); err != nil {
			return err
		}
		tx.Respond(http.StatusCreated, m)
		return nil
	})
	return m, err
}

// participating reads a chat that the caller takes part in. No grant stands in for that.
func participating(ctx context.Context, tx *store.Tx, id string) (conversation, error) {
	c, err := conversations.GetUnchecked(ctx, tx, id)
	if err == nil && !c.has(access.From(ctx).UserID) {
		err = apierr.NoAccess
	}
	return c, err
}

// write adds a message to a chat and tells the participants but its sender.
func (s *Service) write(ctx context.Context, tx *store.Tx, c conversation, m *Message) error {
	if err := insertMessage(ctx, tx, m); err != nil {
		return err
	}
	auditMessage(ctx, tx, *m)
	recipients := make([]string, 0, len(c.positions))
	for _, p := range c.positions {
		if p.userID != m.SenderID {
			recipients = append(recipients, p.userID)
		}
	}
	return s.notifications.Notify(ctx, tx, event.Event{
		Kind: event.MessageReceived, Type: access.Chats, RecordID: m.ChatID, Recipients: recipients,
	})
}

// tell writes a system message about a participant.
func (s *Service) tell(ctx context.Context, tx *store.Tx, c conversation, event, userID string) error {
	return s.write(ctx, tx, c, &Message{
		ID: store.NewID(), ChatID: c.id, SenderID: access.From(ctx).UserID, Type: System, Content: event, CreatedAt: tx.Now(),
		Metadata: jsontext.Value(`{"event":"` + event + `","userId":"` + userID + `"}`),
	})
}

// wordMessage gives a system message its text in the language of the reader.
func (s *Service) wordMessage(ctx context.Context, m *Message) {
	if m.Type == System {
		m.Content = s.texts.Text(endpoint.Language(ctx), "chats."+m.Content, nil)
	}
}

// Messages gives messages of a chat, the newest first. It returns apierr.ChatNotFound, apierr.NoAccess and, for a before
// that is no message of the chat, apierr.InvalidInput.
//
// A page ends where [endpoint.PageBytes] are full; the rest is where the answer's Next says.
func (s *Service) Messages(ctx context.Context, in MessagesInput) (endpoint.Result, error) {
	c, err := conversations.Get(ctx, s.db, in.ID, access.Read)
	if err != nil {
		return endpoint.Result{}, err
	}
	if !c.has(access.From(ctx).UserID) {
		reportLook(ctx, in.ID)
	}
	end, err := in.end(ctx, s.db)
	if err != nil {
		return endpoint.Result{}, err
	}
	room := endpoint.PageBytes
	messages, err := selectMessages(ctx, s.db, in.ID, end, in.limit, func(m *Message) bool {
		m.ReadBy = c.readers(m.seq)
		s.wordMessage(ctx, m)
		room -= m.size()
		return room >= 0
	})
	if err != nil {
		return endpoint.Result{}, err
	}
	result := endpoint.Result{Body: messages}
	if n := len(messages); n > 0 && messages[n-1].seq > 1 { // They are numbered from 1 without gaps.
		result.Next = in.rest(messages[n-1])
	}
	return result, nil
}

// rest is the address of the messages before one.
func (in MessagesInput) rest(last Message) string {
	query := url.Values{"before": {last.ID}}
	if in.Limit != nil {
		query.Set("limit", strconv.Itoa(in.limit))
	}
	return "/v1/chats/" + in.ID + "/messages?" + query.Encode()
}

// Read moves the read position of the caller to the last message and marks his notifications of the chat as read. It
// returns apierr.ChatNotFound and apierr.NoAccess.
func (s *Service) Read(ctx context.Context, in OneInput) (Chat, error) {
	var chat Chat
	caller := access.From(ctx).UserID
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		c, err := participating(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		if before := c.position(caller); before.readSeq < c.lastSeq {
			if err := updateRead(ctx, tx, c, caller); err != nil {
				return err
			}
			conversations.Audit(ctx, tx, "chats.read", c.id, nil, nil)
		}
		if err := s.notifications.MarkRead(ctx, tx, caller, access.Chats, c.id); err != nil {
			return err
		}
		chat, err = s.view(ctx, tx, c.id)
		return err
	})
	return chat, err
}
