package chats

import (
	"context"
	"fmt"
	"math"

	"kontor/store"
)

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

// selectMessages reads messages, the newest first, until fits is false for one. It always returns the first message.
func selectMessages(ctx context.Context, q store.Querier, chatID string, end int64, limit int, fits func(m *Message) bool) ([]Message, error) {
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
		if !fits(&m) && len(messages) > 0 {
			break
		}
		messages = append(messages, m)
	}
	return messages, rows.Err()
}

func selectEndByID(ctx context.Context, q store.Querier, chatID, id string) (seq int64, err error) {
	err = q.QueryRow(ctx, selectSeq, id, chatID).Scan(&seq)
	return seq, err
}

func selectEndByTime(ctx context.Context, q store.Querier, chatID string, t store.Time) (seq int64, err error) {
	err = q.QueryRow(ctx, selectSeqByTime, chatID, t).Scan(&seq)
	return seq, err
}

const selectChatsOf = `SELECT id, chat_id FROM chat_messages WHERE id IN (%s)`

// OfMessages returns the ids of the chats of messages, by the ids of the messages.
func OfMessages(ctx context.Context, q store.Querier, ids []string) (map[string]string, error) {
	return store.Pairs(ctx, q, selectChatsOf, ids)
}
