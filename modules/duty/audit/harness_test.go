package audit_test

import (
	"log/slog"
	"testing"

	"github.com/go-json-experiment/json"

	"kontor/locales"
	"kontor/modules/duty/audit"
	"kontor/store"
	"kontor/store/storetest"
)

func newService(t *testing.T, db *store.DB) *audit.Service {
	t.Helper()
	texts, err := locales.Load()
	if err != nil {
		t.Fatal(err)
	}
	return audit.New(db, texts, slog.New(slog.DiscardHandler))
}

func openWithClock(t *testing.T) (*store.DB, *storetest.Clock) {
	t.Helper()
	clock := storetest.NewClock()
	return storetest.OpenWith(t, clock), clock
}

// open returns a database without any other module.
func open(t *testing.T) *store.DB {
	t.Helper()
	db, _ := openWithClock(t)
	return db
}

// writeEntries writes audit entries in one transaction.
func writeEntries(t *testing.T, db *store.DB, entries ...store.AuditEntry) {
	t.Helper()
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		for _, e := range entries {
			tx.Audit(e)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// writeChanges writes n entries of changes, each in a transaction of its own.
func writeChanges(t *testing.T, db *store.DB, n int) {
	t.Helper()
	for range n {
		writeEntries(t, db, store.AuditEntry{Actor: store.NilID, Action: "roles.create", RecType: "roles", RecID: store.NewID()})
	}
}

// counts returns the number of entries of events, and the number of events that they count.
func counts(t *testing.T, db *store.DB) (entries int, events int64) {
	t.Helper()
	rows, err := db.Query(t.Context(), `SELECT detail FROM audit_entries WHERE kind IS NOT NULL`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		var detail audit.Detail
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(text), &detail); err != nil {
			t.Fatal(err)
		}
		entries++
		events += detail.Count
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return entries, events
}
