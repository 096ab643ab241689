package chats

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/records"
	"kontor/server/apierr"
	"kontor/store"
)

// positionsColumn lists the participants of a chat with their read positions: id and number, in turn, with blanks
// between them, in any order.
const positionsColumn = `COALESCE((
	SELECT string_agg(p.user_id || ' ' || p.read_seq, ' ')
	FROM chat_participants p WHERE p.chat_id = %s.id), '')`

// viewColumns are a chat as the user $1 sees it: his own part, and the last message. Unread is what came after his read
// position without what he wrote himself, which is the difference between the numbers of his last message and of his
// last one up to that position.
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
	` + fmt.Sprintf(positionsColumn, "c") + `,
	c.last_seq, COALESCE(m.id, ''), COALESCE(m.sender_id, ''), COALESCE(m.type, ''), COALESCE(m.content, ''), COALESCE(m.metadata, ''),
	COALESCE(m.created_at, 0)`

const viewJoins = `
	LEFT JOIN chat_participants own ON own.chat_id = c.id AND own.user_id = $1
	LEFT JOIN chat_messages m ON m.chat_id = c.id AND m.seq = c.last_seq`

var selectChatStatement = `SELECT ` + viewColumns + ` FROM chats c` + viewJoins + ` WHERE c.id = $2`

// selectPlaces finds the chats of a page in their order, before any of them is read in full: those after the place ($4, $5),
// or all where $5 is empty.
const selectPlaces = `
	SELECT f.id, f.updated_at FROM chats f
	WHERE f.id IN (
			SELECT t.chat_id FROM chat_participants t WHERE t.user_id = $1
			UNION
			SELECT g.rec_id FROM grants g
			WHERE g.rec_type = 'chats' AND g.permission = 'read'
				AND g.principal_id IN (SELECT $1 UNION ALL SELECT role_id FROM user_roles WHERE user_id = $1))
		AND ($5 = '' OR f.updated_at < $4 OR (f.updated_at = $4 AND f.id < $5))
	ORDER BY f.updated_at DESC, f.id DESC
	LIMIT $2 OFFSET $3`

// chatsAtOnce is how many chats one statement reads in full, and thereby how much is read beyond the end of a page.
const chatsAtOnce = 24

// selectChatsStatement reads chats in full, in any order.
var selectChatsStatement = `SELECT ` + viewColumns + ` FROM chats c` + viewJoins + ` WHERE c.id IN (` + placeholders(2, chatsAtOnce) + `)`

// placeholders are n of them, from a number on.
func placeholders(from, n int) string {
	places := make([]string, n)
	for i := range places {
		places[i] = "$" + strconv.Itoa(from+i)
	}
	return strings.Join(places, ", ")
}

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

	touchChat = `UPDATE chats SET version = version + 1 WHERE id = $1`
)

func scanChat(row records.Row) (Chat, error) {
	var c Chat
	var m Message
	var kind, metadata, positions, messageType, messageMetadata string
	err := row.Scan(&c.ID, &kind, &metadata, &c.CreatedAt, &c.UpdatedAt, &c.version, &c.takesPart, &c.readSeq, &c.UnreadCount,
		&positions, &m.seq, &m.ID, &m.SenderID, &messageType, &m.Content, &messageMetadata, &m.CreatedAt)
	if err != nil {
		return c, err
	}
	parsed := parsePositions(positions)
	c.Type, c.Metadata, c.Participants = Type(kind), jsontext.Value(metadata), members(parsed)
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

func readPlaces(ctx context.Context, q store.Querier, userID string, limit, offset int, after place) ([]place, error) {
	rows, err := q.Query(ctx, selectPlaces, userID, limit, offset, after.at, after.id)
	if err != nil {
		return nil, fmt.Errorf("list chats: %w", err)
	}
	defer rows.Close()
	var places []place
	for rows.Next() {
		var p place
		if err := rows.Scan(&p.id, &p.at); err != nil {
			return nil, fmt.Errorf("list chats: %w", err)
		}
		places = append(places, p)
	}
	return places, rows.Err()
}

// selectChats reads at most chatsAtOnce chats as the user sees them.
func selectChats(ctx context.Context, q store.Querier, userID string, places []place) ([]Chat, error) {
	args := make([]any, 1, chatsAtOnce+1)
	args[0] = userID
	position := make(map[string]int, len(places))
	for i := range chatsAtOnce { // Shorter lists are filled up, so that one prepared statement serves all.
		args = append(args, places[min(i, len(places)-1)].id)
	}
	for i, p := range places {
		position[p.id] = i
	}
	rows, err := q.Query(ctx, selectChatsStatement, args...)
	if err != nil {
		return nil, fmt.Errorf("read chats: %w", err)
	}
	defer rows.Close()
	chats := make([]Chat, len(places))
	for rows.Next() {
		c, err := scanChat(rows)
		if err != nil {
			return nil, fmt.Errorf("read chats: %w", err)
		}
		chats[position[c.ID]] = c
	}
	return chats, rows.Err()
}

// newChat is a chat that is about to be made.
type newChat struct {
	id        string
	kind      Type
	pair      *string
	metadata  jsontext.Value
	createdBy string
	at        store.Time
}

// findPair finds the direct chat of two users. There is one writer, so that none appears between this and inserting one.
func findPair(ctx context.Context, q store.Querier, pair string) (id string, err error) {
	err = q.QueryRow(ctx, selectPair, pair).Scan(&id)
	return id, err
}

// insertChat makes a chat.
func insertChat(ctx context.Context, tx *store.Tx, c newChat, members []string) error {
	_, err := tx.Exec(ctx, insertChatStatement, c.id, string(c.kind), c.pair, string(c.metadata), c.at, c.createdBy)
	if err != nil {
		return err
	}
	for _, userID := range members {
		if err := insertParticipant(ctx, tx, c.id, position{userID: userID}, c.createdBy); err != nil {
			return err
		}
	}
	return nil
}

func insertParticipant(ctx context.Context, tx *store.Tx, chatID string, p position, by string) error {
	_, err := tx.Exec(ctx, insertParticipantStatement, chatID, p.userID, p.readSeq, tx.Now(), by)
	return err
}

func deleteParticipant(ctx context.Context, tx *store.Tx, chatID, userID string) error {
	_, err := tx.Exec(ctx, deleteParticipantStatement, chatID, userID)
	return err
}

// updateRead moves a read position to the last message.
func updateRead(ctx context.Context, tx *store.Tx, c conversation, userID string) error {
	if _, err := tx.Exec(ctx, updateReadStatement, c.id, userID, c.lastSeq); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, touchChat, c.id)
	return err
}
