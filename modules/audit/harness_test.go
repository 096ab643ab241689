package audit_test

import (
	"log/slog"
	"testing"

	"github.com/go-json-experiment/json"

	"kontor/locales"
	"kontor/modules/audit"
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

// counts returns how many entries of events there are and how many events they stand for.
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
