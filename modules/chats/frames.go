package chats

import (
	"context"
	"fmt"
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
		var m Message
		if err := rows.Scan(&m.ID, &m.ChatID, &m.SenderID, &m.Type, &m.Content, &m.CreatedAt); err != nil {
			return err
		}
		found[m.ID] = m.forFrame()
	}
	return rows.Err()
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
