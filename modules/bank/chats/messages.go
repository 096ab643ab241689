package chats

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/attachment"
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
	SenderID  string         `json:"senderId" doc:"The author; of a system message the user who made the change."`
	Content   string         `json:"content" maxLength:"10000"`
	Type      MessageType    `json:"type" enum:"text,system"`
	Metadata  jsontext.Value `json:"metadata"`
	CreatedAt store.Time     `json:"createdAt"`
	ReadBy    []string       `json:"readBy" doc:"Ids of the participants who have read it."`

	seq int64
}

// MessageType is the kind of a message: written by a user, or by Kontor about a change of the participants.
type MessageType string

// The types of messages.
const (
	Text   MessageType = "text"
	System MessageType = "system"
)

// The changes that system messages report: the last part of the key of their text, and the member event of their metadata.
// The member userId names the participant.
const (
	joined  = "joined"
	left    = "left"
	removed = "removed"
	// erased is the text of a message whose author's personal data was erased. Its metadata are empty.
	erased = "erased"
)

// Post writes a message and notifies the other participants. It returns apierr.ChatNotFound and, if the caller is not a
// participant, apierr.NoAccess.
func (s *Service) Post(ctx context.Context, in PostInput) (Message, error) {
	m := Message{ID: store.NewID(), ChatID: in.ID, SenderID: access.From(ctx).UserID, Type: Text,
		Content: in.Content, Metadata: in.metadata, ReadBy: []string{}, CreatedAt: s.db.Now()}
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		c, err := getAsParticipant(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		return s.post(ctx, tx, c, &m)
	})
	return m, err
}

// post writes a message of a participant and answers with it.
func (s *Service) post(ctx context.Context, tx *store.Tx, c chatState, m *Message) error {
	if err := s.requireActive(ctx, tx, m.SenderID); err != nil {
		return err
	}
	weight := records.Weight(m.Content, string(m.Metadata)) + int64(len(c.participants))*participantBytes
	if err := s.quota.Charge(ctx, tx, access.Chats, m.SenderID, 1, weight); err != nil {
		return err
	}
	if err := s.write(ctx, tx, c, m); err != nil {
		return err
	}
	if err := s.followMessage(ctx, tx, c, m.SenderID); err != nil {
		return err
	}
	tx.Respond(*m)
	return nil
}

// getAsParticipant reads a chat in which the caller takes part. It returns apierr.NoAccess for others, whatever their grants.
func getAsParticipant(ctx context.Context, tx *store.Tx, id string) (chatState, error) {
	c, err := chatTable.GetUnchecked(ctx, tx, id)
	if err == nil && !c.has(access.From(ctx).UserID) {
		err = apierr.NoAccess
	}
	return c, err
}

// write adds a message to a chat and notifies the participants except its sender.
func (s *Service) write(ctx context.Context, tx *store.Tx, c chatState, m *Message) error {
	if err := insertMessage(ctx, tx, m); err != nil {
		return err
	}
	auditMessage(ctx, tx, *m)
	recipients := slices.DeleteFunc(userIDs(c.participants), func(id string) bool { return id == m.SenderID })
	message := m.forFrame()
	return s.notifications.Notify(ctx, tx, event.Event{
		Kind: event.MessageReceived, Type: access.Chats, RecordID: m.ChatID, Recipients: recipients, ChatMessage: &message,
	})
}

// writeSystemMessage writes a message about a change of a participant.
func (s *Service) writeSystemMessage(ctx context.Context, tx *store.Tx, c chatState, event, userID string) error {
	return s.write(ctx, tx, c, &Message{
		ID: store.NewID(), ChatID: c.id, SenderID: access.From(ctx).UserID, Type: System, Content: event, CreatedAt: tx.Now(),
		Metadata: jsontext.Value(`{"event":"` + event + `","userId":"` + userID + `"}`),
	})
}

// renderMessage renders a system message in the language of the reader.
func (s *Service) renderMessage(ctx context.Context, m *Message) {
	if m.Type == System {
		m.Content = s.texts.Text(endpoint.Language(ctx), "chats."+m.Content, nil)
	}
}

// Messages returns messages of a chat, the newest first. It returns apierr.ChatNotFound, apierr.NoAccess and, if before is
// not a message of the chat, apierr.InvalidInput.
//
// The answer's Next is the address of the next page.
func (s *Service) Messages(ctx context.Context, in MessagesInput) (endpoint.Result, error) {
	c, err := chatTable.Get(ctx, s.db, in.ID, access.Read)
	if err != nil {
		return endpoint.Result{}, err
	}
	return s.messagesOf(ctx, in, c)
}

// messagesOf returns messages of a chat that the caller may read. The audit trail gets an entry about a reader who does not take part.
func (s *Service) messagesOf(ctx context.Context, in MessagesInput, c chatState) (endpoint.Result, error) {
	if !c.has(access.From(ctx).UserID) {
		reportReading(ctx, in.ID)
	}
	if err := endpoint.TakeTurn(ctx); err != nil {
		return endpoint.Result{}, err
	}
	end, err := in.end(ctx, s.db)
	if err != nil {
		return endpoint.Result{}, err
	}
	messages, err := selectMessages(ctx, s.db, in.ID, end, in.limit)
	if err != nil {
		return endpoint.Result{}, err
	}
	for i := range messages {
		m := &messages[i]
		m.ReadBy = c.readers(m.seq)
		s.renderMessage(ctx, m)
	}
	listed, err := s.listMessages(ctx, messages)
	if err != nil {
		return endpoint.Result{}, err
	}
	result := endpoint.Result{Body: listed}
	if n := len(messages); n > 0 && messages[n-1].seq > 1 { // numbers start at 1 and have no gaps
		result.Next = in.nextPage(messages[n-1])
	}
	return result, nil
}

// nextPage returns the address of the messages before one.
func (in MessagesInput) nextPage(last Message) string {
	query := url.Values{"before": {last.ID}}
	if in.Limit != nil {
		query.Set("limit", strconv.Itoa(in.limit))
	}
	return "/v1/chats/" + in.ID + "/messages?" + query.Encode()
}

// MarkRead moves the read position of the caller to the last message, and marks their notifications about the chat as read.
// It returns apierr.ChatNotFound and apierr.NoAccess.
func (s *Service) MarkRead(ctx context.Context, in OneInput) (Chat, error) {
	var chat Chat
	caller := access.From(ctx).UserID
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		c, err := getAsParticipant(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		if before := c.participant(caller); before.readSeq < c.lastSeq {
			if err := updateRead(ctx, tx, c, caller); err != nil {
				return err
			}
			chatTable.Audit(ctx, tx, "chats.read", c.id, nil, nil)
		}
		if err := s.notifications.MarkRead(ctx, tx, caller, access.Chats, c.id); err != nil {
			return err
		}
		chat, err = s.view(ctx, tx, c.id)
		return err
	})
	return chat, err
}

const (
	// takeNumber returns number and time of the next message. Both come from the row of the chat alone, so that times never
	// decrease, whatever the clock does.
	takeNumber = `
		UPDATE chats SET last_seq = last_seq + 1, updated_at = CASE WHEN updated_at > $2 THEN updated_at ELSE $2 END, version = version + 1
		WHERE id = $1
		RETURNING last_seq, updated_at`

	insertMessageStatement = `
		INSERT INTO chat_messages (id, chat_id, seq, sender_id, sender_seq, type, content, metadata, created_at)
		VALUES ($1, $2, $3, $4,
			COALESCE((SELECT s.sender_seq FROM chat_messages s WHERE s.chat_id = $2 AND s.sender_id = $4 ORDER BY s.seq DESC LIMIT 1), 0) + 1,
			$5, $6, $7, $8)`

	selectMessagesStatement = `
		SELECT id, chat_id, seq, sender_id, type, content, metadata, created_at
		FROM chat_messages
		WHERE chat_id = $1 AND seq < $2
		ORDER BY seq DESC
		LIMIT $3`

	selectSeq = `SELECT seq FROM chat_messages WHERE id = $1 AND chat_id = $2`

	// The number after the last message before a time.
	selectSeqByTime = `
		SELECT COALESCE((SELECT seq FROM chat_messages
			WHERE chat_id = $1 AND created_at < $2
			ORDER BY created_at DESC, seq DESC LIMIT 1), 0) + 1`
)

// afterLastMessage is greater than the number of any message.
const afterLastMessage = math.MaxInt64

func insertMessage(ctx context.Context, tx *store.Tx, m *Message) error {
	if err := tx.QueryRow(ctx, takeNumber, m.ChatID, m.CreatedAt).Scan(&m.seq, &m.CreatedAt); err != nil {
		return fmt.Errorf("number a message: %w", err)
	}
	_, err := tx.Exec(ctx, insertMessageStatement, m.ID, m.ChatID, m.seq, m.SenderID, string(m.Type), m.Content, string(m.Metadata), m.CreatedAt)
	return err
}

// selectMessages reads messages, the newest first.
func selectMessages(ctx context.Context, q store.Querier, chatID string, end int64, limit int) ([]Message, error) {
	rows, err := q.Query(ctx, selectMessagesStatement, chatID, end, limit)
	if err != nil {
		return nil, fmt.Errorf("read messages: %w", err)
	}
	defer rows.Close()
	messages := make([]Message, 0, limit)
	for rows.Next() {
		var m Message
		if err := rows.Scan(&m.ID, &m.ChatID, &m.seq, &m.SenderID, &m.Type, &m.Content, (*[]byte)(&m.Metadata), &m.CreatedAt); err != nil {
			return nil, fmt.Errorf("read message: %w", err)
		}
		messages = append(messages, m)
	}
	return messages, rows.Err()
}

const selectChatsOf = `SELECT id, chat_id FROM chat_messages WHERE id IN (%s)`

// OfMessages returns the ids of the chats of messages, by the ids of the messages.
func OfMessages(ctx context.Context, q store.Querier, ids []string) (map[string]string, error) {
	return store.Pairs(ctx, q, selectChatsOf, ids)
}

const selectSender = `SELECT sender_id, type FROM chat_messages WHERE id = $1 AND chat_id = $2`

// AllowFile decides about the files of messages: callers who may read the chat, or answer it from the inbox, may read them. Participants may add files to their own
// messages, and delete them. Others need the permission to delete the chat.
func (s *Service) AllowFile(ctx context.Context, q store.Querier, target attachment.Target, wanted access.Permission, file *attachment.File) error {
	caller := access.From(ctx).UserID
	if wanted == access.Read {
		c, err := chatTable.Get(ctx, q, target.Parent, access.Read)
		if errors.Is(err, apierr.NoAccess) {
			c, err = chatOfThread(ctx, q, target.Parent)
		}
		if err == nil && !c.has(caller) {
			reportReading(ctx, c.id)
		}
		return err
	}
	c, err := chatTable.GetUnchecked(ctx, q, target.Parent)
	if err != nil {
		return err
	}
	if wanted == access.Delete {
		if may, err := chatTable.Granted(ctx, q, c.id, access.Delete); err != nil || may {
			return err
		}
		if !c.has(caller) || file.UploadedBy != caller {
			return apierr.NoAccess
		}
		return nil
	}
	active, err := s.directory.Active(ctx, q, caller)
	if err != nil {
		return err
	}
	if !c.has(caller) || !active[caller] {
		return apierr.NoAccess
	}
	return allowSender(ctx, q, target, caller)
}

// allowSender checks that a message exists in the chat and was written by the caller.
func allowSender(ctx context.Context, q store.Querier, target attachment.Target, caller string) error {
	var sender, kind string
	err := q.QueryRow(ctx, selectSender, target.Record, target.Parent).Scan(&sender, &kind)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return apierr.FileRecordNotFound
	case err == nil && (sender != caller || MessageType(kind) != Text):
		return apierr.NoAccess
	}
	return err
}
