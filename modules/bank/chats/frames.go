package chats

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"kontor/modules/kit/event"
	"kontor/store"
)

// messagesAtOnce is how many messages one statement of FrameMessages reads.
const messagesAtOnce = 64

// FrameMessages returns, by id, those of the messages that the user may read as a participant of their chats. Frames of
// the notification stream carry them. Messages of chats that the user has left are missing.
func (s *Service) FrameMessages(ctx context.Context, q store.Querier, userID string, ids []string) (map[string]event.ChatMessage, error) {
	found := make(map[string]event.ChatMessage, len(ids))
	for part := range slices.Chunk(ids, messagesAtOnce) {
		if err := readFrameMessages(ctx, q, userID, part, found); err != nil {
			return nil, fmt.Errorf("read messages for frames: %w", err)
		}
	}
	return found, nil
}

const selectFrameMessages = `
	SELECT m.id, m.chat_id, m.sender_id, m.type, m.content, m.created_at
	FROM chat_messages m
	JOIN chat_participants p ON p.chat_id = m.chat_id AND p.user_id = $1
	WHERE m.id IN (`

func readFrameMessages(ctx context.Context, q store.Querier, userID string, ids []string, found map[string]event.ChatMessage) error {
	rows, err := q.Query(ctx, selectFrameMessages+store.In(2, len(ids))+")", store.AppendIn([]any{userID}, ids)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		m, err := scanFrameMessage(rows)
		if err != nil {
			return err
		}
		found[m.ID] = m.forFrame()
	}
	return rows.Err()
}

const (
	selectMessagesByID = `SELECT id, chat_id, sender_id, type, content, created_at FROM chat_messages WHERE id IN (`

	selectReaders = `SELECT chat_id, user_id FROM chat_participants WHERE chat_id IN (`
)

// ReadableMessages returns the messages by id, with the participants of their chats. The notification streams use it for messages
// that another node has stored.
func (s *Service) ReadableMessages(ctx context.Context, q store.Querier, ids []string) (map[string]event.ReadableMessage, error) {
	found := make(map[string]event.ReadableMessage, len(ids))
	readers := map[string]map[string]bool{} // by chat
	for part := range slices.Chunk(ids, messagesAtOnce) {
		messages, err := store.All(ctx, q, scanFrameMessage, selectMessagesByID+store.In(1, len(part))+")", store.AppendIn(nil, part)...)
		if err != nil {
			return nil, fmt.Errorf("read messages for frames: %w", err)
		}
		for _, m := range messages {
			if readers[m.ChatID] == nil {
				readers[m.ChatID] = map[string]bool{}
			}
			found[m.ID] = event.ReadableMessage{ChatMessage: m.forFrame(), Readers: readers[m.ChatID]}
		}
	}
	for part := range slices.Chunk(slices.Collect(maps.Keys(readers)), messagesAtOnce) {
		if err := readReaders(ctx, q, part, readers); err != nil {
			return nil, fmt.Errorf("read the participants of chats: %w", err)
		}
	}
	return found, nil
}

func readReaders(ctx context.Context, q store.Querier, chats []string, readers map[string]map[string]bool) error {
	rows, err := q.Query(ctx, selectReaders+store.In(1, len(chats))+")", store.AppendIn(nil, chats)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var chat, user string
		if err := rows.Scan(&chat, &user); err != nil {
			return err
		}
		readers[chat][user] = true
	}
	return rows.Err()
}

func scanFrameMessage(row store.Scanner) (m Message, err error) {
	err = row.Scan(&m.ID, &m.ChatID, &m.SenderID, &m.Type, &m.Content, &m.CreatedAt)
	return m, err
}

// forFrame returns the message as stream frames carry it.
func (m *Message) forFrame() event.ChatMessage {
	frame := event.ChatMessage{ID: m.ID, ChatID: m.ChatID, CreatedBy: m.SenderID, CreatedAt: m.CreatedAt.Std()}
	if m.Type == System {
		frame.TextKey = "chats." + m.Content
	} else {
		frame.Text = m.Content
	}
	return frame
}
