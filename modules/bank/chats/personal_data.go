package chats

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/personal"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "chat_messages", Holds: "the messages that a user has written", Sections: []string{"messages"}},
		{Name: "chats", Holds: "the metadata of the chats that a user has created", Sections: []string{"chats_created"}},
		{Name: "chat_participants", Why: "It holds ids of users and numbers of messages; the chats belong to the other participants, too."},
		{Name: "inbox_threads", Why: "It holds ids of users and the state of the bank's work; the chat of the thread has its messages."},
		{Name: "inbox_notes", Why: "Notes are internal to the bank. The erasure of the user who writes to the bank blanks them."},
	}
}

const (
	selectWritten = `
		SELECT id, chat_id, seq, sender_id, type, content, metadata, created_at FROM chat_messages
		WHERE sender_id = $1 AND id > $2 ORDER BY id LIMIT $3`

	selectCreated = `
		SELECT id, type, metadata, created_at FROM chats
		WHERE created_by = $1 AND id > $2 ORDER BY id LIMIT $3`
)

// exportedChat is a chat in an export, without its messages.
type exportedChat struct {
	ID        string         `json:"id"`
	Type      string         `json:"type"`
	Metadata  jsontext.Value `json:"metadata"`
	CreatedAt store.Time     `json:"createdAt"`
}

// PersonalSections declares the messages of a user and the chats that they have created, not the messages of others. Only
// participants of a chat read them: users do not get what they wrote in chats that they have left.
func (s *Service) PersonalSections() []personal.Section {
	mayRead := func(ctx context.Context, q store.Querier, chatID string) error {
		_, err := chatTable.Get(ctx, q, chatID, access.Read)
		return err
	}
	return []personal.Section{
		personal.Each(personal.About{Name: "chats_created", Kind: personal.User, Endpoint: "GET /v1/chats/{id}"},
			personal.Query(selectCreated, func(row store.Scanner) (c exportedChat, key string, err error) {
				err = row.Scan(&c.ID, &c.Type, (*[]byte)(&c.Metadata), &c.CreatedAt)
				return c, c.ID, err
			}),
			func(ctx context.Context, q store.Querier, c exportedChat) error { return mayRead(ctx, q, c.ID) }, nil),
		personal.Each(personal.About{Name: "messages", Kind: personal.User, Endpoint: "GET /v1/chats/{id}/messages"},
			personal.Query(selectWritten, func(row store.Scanner) (m Message, key string, err error) {
				err = row.Scan(&m.ID, &m.ChatID, &m.seq, &m.SenderID, &m.Type, &m.Content, (*[]byte)(&m.Metadata), &m.CreatedAt)
				m.ReadBy = []string{}
				return m, m.ID, err
			}),
			func(ctx context.Context, q store.Querier, m Message) error { return mayRead(ctx, q, m.ChatID) },
			func(ctx context.Context, _ store.Querier, m Message) (any, error) {
				s.renderMessage(ctx, &m)
				return m, nil
			}),
	}
}

const (
	selectUnerasedMessages = `
		SELECT id FROM chat_messages
		WHERE sender_id = $1 AND id > $2 AND type = 'text' ORDER BY id LIMIT $3`

	eraseMessage = `
		UPDATE chat_messages SET type = 'system', content = '` + erased + `', metadata = '{}' WHERE id = $1 RETURNING chat_id`

	selectChatsWithMetadata = `
		SELECT id FROM chats WHERE created_by = $1 AND id > $2 AND metadata <> '{}' ORDER BY id LIMIT $3`

	selectNotesAbout = `
		SELECT n.id FROM inbox_notes n JOIN inbox_threads t ON t.chat_id = n.chat_id
		WHERE t.user_id = $1 AND n.id > $2 AND n.content <> '' ORDER BY n.id LIMIT $3`

	eraseNote = `UPDATE inbox_notes SET content = '' WHERE id = $1`

	// The key of a direct chat may have a digest of the metadata after the ids of its users.
	eraseChat = `
		UPDATE chats SET metadata = '{}', version = version + 1,
			pair = CASE WHEN length(pair) > 73 THEN substr(pair, 1, 73) || ' ' || id ELSE pair END
		WHERE id = $1`
)

// ErasePerson replaces the messages that a user has written by a system message, and removes the metadata of chats that they
// have created.
func (s *Service) ErasePerson(ctx context.Context, tx *store.Tx, subject personal.Subject, cursor string) (string, error) {
	if subject.Kind != personal.User {
		return "", nil
	}
	return personal.Run(ctx, tx, cursor,
		personal.EachID(selectNotesAbout, subject.ID, func(ctx context.Context, tx *store.Tx, id string) error {
			return noteProof.ChangeRow(ctx, tx, personal.Action, id, eraseNote, id)
		}),
		personal.EachID(selectUnerasedMessages, subject.ID, func(ctx context.Context, tx *store.Tx, id string) error {
			return messageProof.Change(ctx, tx, personal.Action, id, func() error {
				var chatID string
				if err := tx.QueryRow(ctx, eraseMessage, id).Scan(&chatID); err != nil {
					return err
				}
				_, err := tx.Exec(ctx, incrementVersion, chatID)
				return err
			})
		}),
		personal.EachID(selectChatsWithMetadata, subject.ID, func(ctx context.Context, tx *store.Tx, id string) error {
			return chatProof.ChangeRow(ctx, tx, personal.Action, id, eraseChat, id)
		}))
}

// requireActive returns apierr.NoAccess for a user who was disabled or erased after the request was authenticated.
func (s *Service) requireActive(ctx context.Context, tx *store.Tx, userID string) error {
	active, err := s.directory.Active(ctx, tx, userID)
	if err == nil && !active[userID] {
		err = apierr.NoAccess
	}
	return err
}

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

	userID string
}

func readChat(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	c := Chat{Participants: []string{}}
	var s storedChat
	err := q.QueryRow(ctx, selectProvenChat, id).Scan(&c.ID, (*string)(&c.Type), (*[]byte)(&c.Metadata), &c.CreatedAt, &s.Pair, &s.CreatedBy)
	if err != nil {
		return store.Record{}, err
	}
	s.Joined, err = store.All(ctx, q, func(row store.Scanner) (j joinedUser, err error) {
		err = row.Scan(&j.userID, &j.At, &j.By)
		c.Participants = append(c.Participants, j.userID)
		return j, err
	}, selectJoined, id)
	return store.Record{Answer: c, Stored: s}, err
}

// messageProof covers messages. A system message is digested with the key of its text.
var messageProof = records.Proof{
	Type: "chat_messages", From: "chat_messages", Key: "id", Read: readMessage, Outside: map[string]string{"readBy": "[]"},
}

const selectProvenMessage = `
	SELECT id, chat_id, sender_id, type, content, metadata, created_at, seq FROM chat_messages WHERE id = $1`

func readMessage(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	var m Message
	err := q.QueryRow(ctx, selectProvenMessage, id).Scan(&m.ID, &m.ChatID, &m.SenderID, (*string)(&m.Type), &m.Content, (*[]byte)(&m.Metadata), &m.CreatedAt, &m.seq)
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
