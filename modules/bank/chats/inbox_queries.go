package chats

import (
	"context"
	"fmt"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/store"
)

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

func selectThreadOf(ctx context.Context, q store.Querier, userID string) (id string, err error) {
	err = q.QueryRow(ctx, selectThreadOfUser, userID).Scan(&id)
	return id, err
}

// insertThread writes the thread of a new chat: it waits for the first message of the customer.
func insertThread(ctx context.Context, tx *store.Tx, chatID, userID string) error {
	_, err := tx.Exec(ctx, insertThreadStatement, chatID, userID, tx.Now())
	return err
}

func updateThread(ctx context.Context, tx *store.Tx, t Thread) error {
	_, err := tx.Exec(ctx, updateThreadStatement, t.ID, string(t.State), t.Assignee, t.SnoozedUntil, t.ChangedAt, t.changedBy, t.version)
	return err
}

func insertNote(ctx context.Context, tx *store.Tx, n Note) error {
	_, err := tx.Exec(ctx, insertNoteStatement, n.ID, n.ThreadID, n.AuthorID, n.Content, n.CreatedAt)
	return err
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
