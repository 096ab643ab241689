package chats

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// List returns the chats in which the caller takes part, and those that they may read by a grant on them, the latest
// activity first. With a limit it returns a page, and the answer's Next is the address of the next one. Chats after the first ones
// are read while the answer is written.
func (s *Service) List(ctx context.Context, in ListInput) (endpoint.Result, error) {
	if err := endpoint.TakeTurn(ctx); err != nil {
		return endpoint.Result{}, err
	}
	matching, err := list.ByText(ctx, s.db, in.Text.Search(chatSource, messageSource), "f.id")
	if err != nil {
		return endpoint.Result{}, err
	}
	var cursors []cursor
	var chats []Chat
	err = s.db.View(ctx, func(v *store.View) error { // One snapshot: a chat must not move in the list between the two statements.
		cursors, err = selectCursors(ctx, v, access.From(ctx).UserID, in.limit+1, in.offset, in.before, matching)
		if err != nil {
			return err
		}
		chats, err = s.readChats(ctx, v, cursors[:min(len(cursors), in.limit, chatsAtOnce)])
		return err
	})
	if err != nil {
		return endpoint.Result{}, err
	}
	var result endpoint.Result
	if len(cursors) > in.limit {
		cursors = cursors[:in.limit]
		result.Next = in.nextPage(cursors[in.limit-1])
	}
	if remaining := cursors[len(chats):]; len(remaining) > 0 {
		result.Rest = func(ctx context.Context) (any, error) {
			if len(remaining) == 0 {
				return nil, nil
			}
			part := remaining[:min(len(remaining), chatsAtOnce)]
			remaining = remaining[len(part):]
			return s.readLater(ctx, part)
		}
	}
	result.Body, err = s.listChats(ctx, chats)
	return result, err
}

// nextPage returns the address of the chats after a cursor.
func (in ListInput) nextPage(last cursor) string {
	query := url.Values{"before": {last.String()}}
	if in.Text != "" {
		query.Set("q", string(in.Text))
	}
	if in.Limit != nil {
		query.Set("limit", strconv.Itoa(in.limit))
	}
	return "/v1/chats?" + query.Encode()
}

// readChats reads chats in full.
func (s *Service) readChats(ctx context.Context, q store.Querier, cursors []cursor) ([]Chat, error) {
	if len(cursors) == 0 {
		return []Chat{}, nil
	}
	chats, err := selectChats(ctx, q, access.From(ctx).UserID, cursors)
	for i := range chats {
		s.renderLastMessage(ctx, &chats[i])
	}
	return chats, err
}

// readLater reads chats that were found before. It leaves out those that the caller may no longer read.
func (s *Service) readLater(ctx context.Context, cursors []cursor) ([]ListedChat, error) {
	chats, err := s.readChats(ctx, s.db, cursors)
	if err != nil {
		return nil, err
	}
	kept := chats[:0]
	for _, c := range chats {
		if !c.takesPart {
			_, err := chatTable.Get(ctx, s.db, c.ID, access.Read)
			switch {
			case errors.Is(err, apierr.NoAccess), errors.Is(err, apierr.ChatNotFound):
				continue
			case err != nil:
				return nil, err
			}
		}
		kept = append(kept, c)
	}
	return s.listChats(ctx, kept)
}

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

// chatsAtOnce is how many chats one statement reads in full. It bounds the memory of a list.
const chatsAtOnce = 48

// selectChatsStatement reads chats in full, in any order. The ids and a closing bracket follow.
var selectChatsStatement = `SELECT ` + viewColumns + ` FROM chats c` + viewJoins + ` WHERE c.id IN (`

const (
	insertChatStatement = `
		INSERT INTO chats (id, type, pair, metadata, created_at, created_by, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $5)`

	selectPair = `SELECT id, metadata FROM chats WHERE pair = $1`

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
	var participants string
	err := row.Scan(&c.ID, (*string)(&c.Type), (*[]byte)(&c.Metadata), &c.CreatedAt, &c.UpdatedAt, &c.version, &c.takesPart, &c.readSeq, &c.UnreadCount,
		&participants, &m.seq, &m.ID, &m.SenderID, (*string)(&m.Type), &m.Content, (*[]byte)(&m.Metadata), &m.CreatedAt)
	if err != nil {
		return c, err
	}
	parsed := parseParticipants(participants)
	c.Participants = userIDs(parsed)
	if m.ID != "" {
		m.ChatID, m.ReadBy = c.ID, readers(parsed, m.seq)
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
	return store.All(ctx, q, func(row store.Scanner) (c cursor, err error) {
		err = row.Scan(&c.id, &c.at)
		return c, err
	}, text, args...)
}

// selectChats reads at most chatsAtOnce chats as the user sees them.
func selectChats(ctx context.Context, q store.Querier, userID string, cursors []cursor) ([]Chat, error) {
	ids, index := make([]string, len(cursors)), make(map[string]int, len(cursors))
	for i, c := range cursors {
		ids[i], index[c.id] = c.id, i
	}
	found, err := store.All(ctx, q, scanChat, selectChatsStatement+store.In(2, len(ids))+")", store.AppendIn([]any{userID}, ids)...)
	chats := make([]Chat, len(cursors))
	for _, c := range found {
		chats[index[c.ID]] = c
	}
	return chats, err
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

// updateRead moves a read position to the last message.
func updateRead(ctx context.Context, tx *store.Tx, c chatState, userID string) error {
	if _, err := tx.Exec(ctx, updateReadStatement, c.id, userID, c.lastSeq); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, incrementVersion, c.id)
	return err
}

// maxPreview is the length of the preview of a message in characters.
const maxPreview = "120"

const threadColumns = `
	inbox_threads.chat_id, inbox_threads.user_id, inbox_threads.state, inbox_threads.assignee, inbox_threads.snoozed_until,
	COALESCE((SELECT substr(m.content, 1, ` + maxPreview + `) FROM chat_messages m
		WHERE m.chat_id = inbox_threads.chat_id AND m.type = 'text' ORDER BY m.seq DESC LIMIT 1), ''),
	inbox_threads.created_at, inbox_threads.changed_at, inbox_threads.changed_by, inbox_threads.version`

const (
	selectThreadStatement = `SELECT ` + threadColumns + ` FROM inbox_threads WHERE chat_id = $1`

	selectThreadOfUser = `SELECT chat_id FROM inbox_threads WHERE user_id = $1`

	// The thread of a new chat waits for the first message of the customer.
	insertThreadStatement = `
		INSERT INTO inbox_threads (chat_id, user_id, state, created_at, changed_at, changed_by) VALUES ($1, $2, 'waiting', $3, $3, $2)`

	updateThreadStatement = `
		UPDATE inbox_threads SET state = $2, assignee = $3, snoozed_until = $4, changed_at = $5, changed_by = $6, version = $7
		WHERE chat_id = $1`

	insertNoteStatement = `INSERT INTO inbox_notes (id, chat_id, author_id, content, created_at) VALUES ($1, $2, $3, $4, $5)`

	// Users who read all customers answer them: see checkTeam.
	selectAnswers = `
		SELECT EXISTS (SELECT 1 FROM held_roles WHERE user_id = $1 AND role_id = $2)
			OR EXISTS (SELECT 1 FROM permissions g WHERE g.rec_type = 'customers' AND g.rec_id = '' AND g.permission = 'read_all'
				AND g.principal_id IN (SELECT $1 UNION ALL SELECT role_id FROM held_roles WHERE user_id = $1))`
)

func scanThread(row list.Row) (t Thread, err error) {
	err = row.Scan(&t.ID, &t.UserID, (*string)(&t.State), &t.Assignee, &t.SnoozedUntil, &t.Preview, &t.CreatedAt, &t.ChangedAt,
		&t.changedBy, &t.version)
	return t, err
}

var threadList = list.New(list.Source[Thread]{
	From: "inbox_threads", Columns: threadColumns, ID: "inbox_threads.chat_id", Created: "inbox_threads.created_at",
	Tables: []string{"inbox_threads", "chat_messages"},
	Scan:   scanThread,
	Fields: list.Fields{
		{Name: "user_id", Type: list.UUID, Column: "inbox_threads.user_id"},
		{Name: "state", Type: list.Text, Column: "inbox_threads.state", Key: "inbox_threads.state"},
		{Name: "assignee", Type: list.UUID, Column: "inbox_threads.assignee", Null: true},
		{Name: "created_at", Type: list.Time, Column: "inbox_threads.created_at"},
		{Name: "changed_at", Type: list.Time, Column: "inbox_threads.changed_at"},
	},
})

const noteColumns = "id, chat_id, author_id, content, created_at"

func scanNote(row list.Row) (n Note, err error) {
	err = row.Scan(&n.ID, &n.ThreadID, &n.AuthorID, &n.Content, &n.CreatedAt)
	return n, err
}

var noteList = list.New(list.Source[Note]{
	From: "inbox_notes", Columns: noteColumns, ID: "id", Created: "created_at", Tables: []string{"inbox_notes"}, Scan: scanNote,
	Fields: list.Fields{
		{Name: "author_id", Type: list.UUID, Column: "author_id"},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
	},
})

func selectThread(ctx context.Context, q store.Querier, id string) (Thread, error) {
	return scanThread(q.QueryRow(ctx, selectThreadStatement, id))
}

// answersCustomers reports whether a user answers customers for the bank.
func answersCustomers(ctx context.Context, q store.Querier, userID string) (answers bool, err error) {
	if err = q.QueryRow(ctx, selectAnswers, userID, access.Administrator).Scan(&answers); err != nil {
		err = fmt.Errorf("read whether a user answers customers: %w", err)
	}
	return answers, err
}

const inboxMigration = 65

// threadProof covers the threads, without the preview of their messages.
var threadProof = records.Proof{
	Type: "inbox_threads", From: "inbox_threads", Key: "chat_id", Migration: inboxMigration, Outside: map[string]string{"preview": `""`},
	Read: func(ctx context.Context, q store.Querier, id string) (store.Record, error) {
		t, err := selectThread(ctx, q, id)
		t.Preview = ""
		return store.Record{Answer: t, Stored: map[string]any{"changed_by": t.changedBy, "version": t.version}}, err
	},
}

const selectNoteStatement = `SELECT ` + noteColumns + ` FROM inbox_notes WHERE id = $1`

// noteProof covers the notes.
var noteProof = records.Proof{
	Type: "inbox_notes", From: "inbox_notes", Key: "id", Migration: inboxMigration,
	Read: func(ctx context.Context, q store.Querier, id string) (store.Record, error) {
		n, err := scanNote(q.QueryRow(ctx, selectNoteStatement, id))
		return store.Record{Answer: n}, err
	},
}
