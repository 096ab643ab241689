package search_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"kontor/server/servertest"
	"kontor/store"
	"kontor/store/storetest"
	"kontor/store/testenv"
)

// messages is a log that counts the messages with a text.
type messages struct {
	slog.Handler
	text string
	sent *atomic.Int64
}

// Enabled reports true: every message is searched.
func (m messages) Enabled(context.Context, slog.Level) bool { return true }

// Handle counts the message if it has the text.
func (m messages) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, m.text) {
		m.sent.Add(1)
	}
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
	log := messages{slog.DiscardHandler, "full-text index is damaged", new(atomic.Int64)}
	db = storetest.OpenAgain(t, store.Options{Dir: dir, Log: slog.New(log)})
	testenv.Wait(t, "the damage to be noticed", func() bool { return log.sent.Load() > 0 })
	testenv.Wait(t, "the repair", func() bool {
		var left int
		servertest.InTx(t, db, func(ctx context.Context, tx *store.Tx) error {
			return tx.QueryRow(ctx, `SELECT COUNT(*) FROM search_documents`).Scan(&left)
		})
		return left == 0
	})
	servertest.Exec(t, db, `INSERT INTO search_documents (number, source, source_id, rec_id, title, body) VALUES (1, 'customers', 'a', 'a', ' cclara ', '')`)
	if err := db.Ready(t.Context()); err != nil {
		t.Errorf("the database is not ready: %v", err)
	}
}
