package chats

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/records"
	"kontor/server/apierr"
	"kontor/store"
)

// participantsColumn selects the participants of a chat with their read positions: ids and numbers in turn, separated by
// blanks, in any order.
const participantsColumn = `COALESCE((
	SELECT string_agg(p.user_id || ' ' || p.read_seq, ' ')
	FROM chat_participants p WHERE p.chat_id = %s.id), '')`

// viewColumns select a chat as the user $1 sees it, with the last message. Unread are the messages after the user's read
// position except their own. That is the difference of the numbers, minus the difference of sender_seq between the user's
// last message and their last message up to the position.
var viewColumns = `
	c.id, c.type, c.metadata, c.created_at, c.updated_at, c.version,
	own.user_id IS NOT NULL, COALESCE(own.read_seq, 0),
	CASE WHEN own.user_id IS NULL OR own.read_seq = c.last_seq THEN 0 ELSE
		c.last_seq - own.read_seq
		- COALESCE((SELECT s.sender_seq FROM chat_messages s
			WHERE s.chat_id = c.id AND s.sender_id = $1 ORDER BY s.seq DESC LIMIT 1), 0)
		+ COALESCE((SELECT s.sender_seq FROM chat_messages s
			WHERE s.chat_id = c.id AND s.sender_id = $1 AND s.seq <= own.read_seq ORDER BY s.seq DESC LIMIT 1), 0)
	END,
	` + fmt.Sprintf(participantsColumn, "c") + `,
	c.last_seq, COALESCE(m.id, ''), COALESCE(m.sender_id, ''), COALESCE(m.type, ''), COALESCE(m.content, ''), COALESCE(m.metadata, ''),
	COALESCE(m.created_at, 0)`

const viewJoins = `
	LEFT JOIN chat_participants own ON own.chat_id = c.id AND own.user_id = $1
	LEFT JOIN chat_messages m ON m.chat_id = c.id AND m.seq = c.last_seq`

var selectChatStatement = `SELECT ` + viewColumns + ` FROM chats c` + viewJoins + ` WHERE c.id = $2`

// selectCursorsStatement selects the cursors of the chats of a page, in their order: those after the cursor ($4, $5), or all
// if $5 is empty. The chats are read in full later.
const selectCursorsStatement = `
	SELECT f.id, f.updated_at FROM chats f
	WHERE f.id IN (
			SELECT t.chat_id FROM chat_participants t WHERE t.user_id = $1
			UNION
			SELECT g.rec_id FROM permissions g
			WHERE g.rec_type = 'chats' AND g.permission = 'read'
				AND g.principal_id IN (SELECT $1 UNION ALL SELECT role_id FROM held_roles WHERE user_id = $1))
		AND ($5 = '' OR f.updated_at < $4 OR (f.updated_at = $4 AND f.id < $5))%s
	ORDER BY f.updated_at DESC, f.id DESC
	LIMIT $2 OFFSET $3`

// chatsAtOnce is how many chats one statement reads in full. It bounds what is read beyond the end of a page.
const chatsAtOnce = 24

// selectChatsStatement reads chats in full, in any order. The ids and a closing bracket follow.
var selectChatsStatement = `SELECT ` + viewColumns + ` FROM chats c` + viewJoins + ` WHERE c.id IN (`

const (
	insertChatStatement = `
		INSERT INTO chats (id, type, pair, metadata, created_at, created_by, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $5)`

	selectPair = `SELECT id FROM chats WHERE pair = $1`

	insertParticipantStatement = `
		INSERT INTO chat_participants (chat_id, user_id, read_seq, joined_at, added_by)
		VALUES ($1, $2, $3, $4, $5)`

	deleteParticipantStatement = `DELETE FROM chat_participants WHERE chat_id = $1 AND user_id = $2`

	updateReadStatement = `UPDATE chat_participants SET read_seq = $3 WHERE chat_id = $1 AND user_id = $2`

	incrementVersion = `UPDATE chats SET version = version + 1 WHERE id = $1`
)

func scanChat(row records.Row) (Chat, error) {
	var c Chat
	var m Message
	var kind, metadata, participants, messageType, messageMetadata string
	err := row.Scan(&c.ID, &kind, &metadata, &c.CreatedAt, &c.UpdatedAt, &c.version, &c.takesPart, &c.readSeq, &c.UnreadCount,
		&participants, &m.seq, &m.ID, &m.SenderID, &messageType, &m.Content, &messageMetadata, &m.CreatedAt)
	if err != nil {
		return c, err
	}
	parsed := parseParticipants(participants)
	c.Type, c.Metadata, c.Participants = Type(kind), jsontext.Value(metadata), userIDs(parsed)
	if m.ID != "" {
		m.ChatID, m.Type, m.Metadata, m.ReadBy = c.ID, MessageType(messageType), jsontext.Value(messageMetadata), readers(parsed, m.seq)
		c.LastMessage = &m
	}
	return c, nil
}

func selectChat(ctx context.Context, q store.Querier, userID, id string) (Chat, error) {
	c, err := scanChat(q.QueryRow(ctx, selectChatStatement, userID, id))
	if errors.Is(err, store.ErrNotFound) {
		return c, apierr.ChatNotFound
	}
	if err != nil {
		return c, fmt.Errorf("read chat: %w", err)
	}
	return c, nil
}

// selectCursors reads the cursors of a page. matching is a further condition, or nil.
func selectCursors(ctx context.Context, q store.Querier, userID string, limit, offset int, after cursor, matching *store.TextCondition) ([]cursor, error) {
	text, args := fmt.Sprintf(selectCursorsStatement, ""), []any{userID, limit, offset, after.at, after.id}
	if matching != nil {
		condition := matching.From(len(args))
		text, args = fmt.Sprintf(selectCursorsStatement, " AND ("+condition.SQL+")"), append(args, condition.Args...)
	}
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list chats: %w", err)
	}
	defer rows.Close()
	var cursors []cursor
	for rows.Next() {
		var c cursor
		if err := rows.Scan(&c.id, &c.at); err != nil {
			return nil, fmt.Errorf("list chats: %w", err)
		}
		cursors = append(cursors, c)
	}
	return cursors, rows.Err()
}

// selectChats reads at most chatsAtOnce chats as the user sees them.
func selectChats(ctx context.Context, q store.Querier, userID string, cursors []cursor) ([]Chat, error) {
	ids, index := make([]string, len(cursors)), make(map[string]int, len(cursors))
	for i, c := range cursors {
		ids[i], index[c.id] = c.id, i
	}
	rows, err := q.Query(ctx, selectChatsStatement+store.In(2, len(ids))+")", store.AppendIn([]any{userID}, ids)...)
	if err != nil {
		return nil, fmt.Errorf("read chats: %w", err)
	}
	defer rows.Close()
	chats := make([]Chat, len(cursors))
	for rows.Next() {
		c, err := scanChat(rows)
		if err != nil {
			return nil, fmt.Errorf("read chats: %w", err)
		}
		chats[index[c.ID]] = c
	}
	return chats, rows.Err()
}

// newChat is a chat that is about to be created.
type newChat struct {
	id        string
	kind      Type
	pair      *string
	metadata  jsontext.Value
	createdBy string
	at        store.Time
}

// findPair returns the id of the direct chat of two users. There is one writer, so none is created before the transaction
// ends.
func findPair(ctx context.Context, q store.Querier, pair string) (id string, err error) {
	err = q.QueryRow(ctx, selectPair, pair).Scan(&id)
	return id, err
}

// insertChat writes a chat and its participants.
func insertChat(ctx context.Context, tx *store.Tx, c newChat, members []string) error {
	_, err := tx.Exec(ctx, insertChatStatement, c.id, string(c.kind), c.pair, string(c.metadata), c.at, c.createdBy)
	if err != nil {
		return err
	}
	for _, userID := range members {
		if err := insertParticipant(ctx, tx, c.id, participant{userID: userID}, c.createdBy); err != nil {
			return err
		}
	}
	return nil
}

func insertParticipant(ctx context.Context, tx *store.Tx, chatID string, p participant, by string) error {
	_, err := tx.Exec(ctx, insertParticipantStatement, chatID, p.userID, p.readSeq, tx.Now(), by)
	return err
}

func deleteParticipant(ctx context.Context, tx *store.Tx, chatID, userID string) error {
	_, err := tx.Exec(ctx, deleteParticipantStatement, chatID, userID)
	return err
}

// updateRead moves a read position to the last message.
func updateRead(ctx context.Context, tx *store.Tx, c chatState, userID string) error {
	if _, err := tx.Exec(ctx, updateReadStatement, c.id, userID, c.lastSeq); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, incrementVersion, c.id)
	return err
}
