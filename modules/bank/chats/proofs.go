package chats

import (
	"context"
	"fmt"

	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/store"
)

// Proofs returns how the audit trail digests the records of this module: chats with their participants, and messages. Read
// positions are not covered, nor values that follow from the messages.
func Proofs() []records.Proof {
	return []records.Proof{chatProof, messageProof, threadProof, noteProof}
}

var chatProof = records.Proof{
	Type: access.Chats.Name, From: "chats", Key: "id", Read: readChat, Changes: &store.ChangeRule{},
	Outside: map[string]string{"lastMessage": "null", "unreadCount": "0", "updatedAt": `"` + store.Time(0).String() + `"`},
}

const (
	selectProvenChat = `SELECT id, type, metadata, created_at, pair, created_by FROM chats WHERE id = $1`
	selectJoined     = `SELECT user_id, joined_at, added_by FROM chat_participants WHERE chat_id = $1 ORDER BY user_id`
)

// storedChat holds the columns of a chat that the API does not show.
type storedChat struct {
	Pair      *string      `json:"pair"`
	CreatedBy string       `json:"created_by"`
	Joined    []joinedUser `json:"joined"` // in the order of the participants
}

type joinedUser struct {
	At store.Time `json:"at"`
	By string     `json:"by"`
}

func readChat(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	c := Chat{Participants: []string{}}
	var s storedChat
	var kind string
	err := q.QueryRow(ctx, selectProvenChat, id).Scan(&c.ID, &kind, (*[]byte)(&c.Metadata), &c.CreatedAt, &s.Pair, &s.CreatedBy)
	if err != nil {
		return store.Record{}, err
	}
	c.Type = Type(kind)
	rows, err := q.Query(ctx, selectJoined, id)
	if err != nil {
		return store.Record{}, fmt.Errorf("read participants: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var userID string
		var j joinedUser
		if err := rows.Scan(&userID, &j.At, &j.By); err != nil {
			return store.Record{}, fmt.Errorf("read participant: %w", err)
		}
		c.Participants, s.Joined = append(c.Participants, userID), append(s.Joined, j)
	}
	return store.Record{Answer: c, Stored: s}, rows.Err()
}

// messageProof covers messages. A system message is digested with the key of its text.
var messageProof = records.Proof{
	Type: "chat_messages", From: "chat_messages", Key: "id", Read: readMessage, Outside: map[string]string{"readBy": "[]"},
}

const selectProvenMessage = `
	SELECT id, chat_id, sender_id, type, content, metadata, created_at, seq FROM chat_messages WHERE id = $1`

func readMessage(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	var m Message
	var kind string
	err := q.QueryRow(ctx, selectProvenMessage, id).Scan(&m.ID, &m.ChatID, &m.SenderID, &kind, &m.Content, (*[]byte)(&m.Metadata), &m.CreatedAt, &m.seq)
	m.Type = MessageType(kind)
	return auditedMessage(m), err
}

// auditedMessage returns a message as the audit trail digests it.
func auditedMessage(m Message) store.Record {
	m.ReadBy = []string{}
	return store.Record{Answer: m, Stored: map[string]int64{"seq": m.seq}}
}

// auditMessage writes the audit entry of a new message.
func auditMessage(ctx context.Context, tx *store.Tx, m Message) {
	tx.Audit(store.AuditEntry{Actor: records.Actor(ctx), Action: "chats.message", RecType: messageProof.Type, RecID: m.ID, After: auditedMessage(m)})
}
