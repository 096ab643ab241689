package app_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"kontor/modules/app"
	"kontor/modules/kit/records"
	"kontor/server/settings"
	"kontor/store"
	"kontor/store/audittrail"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

// checkRecords compares the records of a database with its audit trail and returns their number.
func checkRecords(t *testing.T, o store.Options) (compared int64, err error) {
	t.Helper()
	_, err = inspect.Check(t.Context(), storetest.Source(o), func(ctx context.Context, e *audittrail.Evidence) (err error) {
		compared, err = app.CheckRecords(ctx, e)
		return err
	})
	return compared, err
}

// The upgrade runs once: a record that is manipulated afterwards is not digested again.
func TestStart_UpgradesTheDigestsOfAnEarlierVersion(t *testing.T) {
	for name, form := range map[string]string{
		"before records had a form": "users", "form 1, before users had display names": "record-form-1",
	} {
		t.Run(name, func(t *testing.T) { upgradesTheDigests(t, form) })
	}
}

func upgradesTheDigests(t *testing.T, form string) {
	o := storetest.Options(t)
	db := storetest.OpenAgain(t, o)
	userID, deletedID := store.NewID(), store.NewID()
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO users (id, status, language, created_at, created_by, modified_at, modified_by)
			VALUES ($1, 'active', 'en', 0, '', 0, '')`, userID)
		// Earlier versions digested in another form, and most records not at all.
		tx.Audit(store.AuditEntry{Action: "users.create", RecType: "users", RecID: userID, After: "another form"})
		tx.Audit(store.AuditEntry{Action: "tasks.create", RecType: "tasks", RecID: deletedID, After: "another form"})
		tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "audit.form", RecType: "audit", RecID: form + "/begun"})
		tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "audit.form", RecType: "audit", RecID: form})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := checkRecords(t, o); !errors.Is(err, app.ErrOldForm) {
		t.Fatalf("before the start: %v", err)
	}
	start := func() {
		t.Helper()
		m, err := app.New(db, app.Options{Settings: settings.Settings{}, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close(t.Context())
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	start()
	if n, err := checkRecords(t, o); err != nil || n < 100 { // the user, the roles and their first grants
		t.Fatalf("after the start: %d records, %v", n, err)
	}
	err = db.InTx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), "UPDATE users SET status = 'disabled'")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	start()
	var broken *records.Break
	if _, err := checkRecords(t, o); !errors.As(err, &broken) || broken.Type != "users" || broken.ID != userID {
		t.Errorf("a record was manipulated between two starts: got %v", err)
	}
}
