package search_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"kontor/server/servertest"
	"kontor/store"
	"kontor/store/storetest"
)

// messages is a log that sends its messages.
type messages struct {
	slog.Handler
	sent chan string
}

// Enabled reports true: every message is sent.
func (m messages) Enabled(context.Context, slog.Level) bool { return true }

// Handle sends the message.
func (m messages) Handle(_ context.Context, r slog.Record) error {
	m.sent <- r.Message
	return nil
}

// A damaged index is noticed after a start, and created again: it is derived, so that no backup is needed.
func TestIndex_IsRepaired(t *testing.T) {
	if storetest.SQLiteOnly(t, "the server repairs its indexes with REINDEX") {
		return
	}
	dir := t.TempDir()
	db := storetest.OpenDir(t, dir)
	for _, sql := range []string{
		`INSERT INTO search_documents (number, source, source_id, rec_id, title, body) VALUES (1, 'customers', 'a', 'a', ' canna ', ' cberta ')`,
		`DELETE FROM kontor_words_data WHERE id > 10`,
	} {
		servertest.Exec(t, db, sql)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	log := messages{slog.DiscardHandler, make(chan string, 100)}
	db = storetest.OpenAgain(t, store.Options{Dir: dir, Log: slog.New(log)})
	for message := range log.sent {
		if strings.Contains(message, "full-text index is damaged") {
			break
		}
	}
	// The repair is a job of the writer: one that follows it sees its result.
	var left int
	servertest.InTx(t, db, func(ctx context.Context, tx *store.Tx) error {
		return tx.QueryRow(ctx, `SELECT COUNT(*) FROM search_documents`).Scan(&left)
	})
	for left != 0 {
		servertest.InTx(t, db, func(ctx context.Context, tx *store.Tx) error {
			return tx.QueryRow(ctx, `SELECT COUNT(*) FROM search_documents`).Scan(&left)
		})
	}
	servertest.Exec(t, db, `INSERT INTO search_documents (number, source, source_id, rec_id, title, body) VALUES (1, 'customers', 'a', 'a', ' cclara ', '')`)
	if err := db.Ready(t.Context()); err != nil {
		t.Errorf("the database is not ready: %v", err)
	}
}
