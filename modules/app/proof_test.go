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
	"kontor/store/storetest"
)

// checked compares the records of a database in use, and returns how many there are.
func checked(t *testing.T, dir string) (compared int64, err error) {
	t.Helper()
	_, err = store.CheckWith(t.Context(), store.Options{Dir: dir}, func(ctx context.Context, e *store.Evidence) (err error) {
		compared, err = app.CheckRecords(ctx, e)
		return err
	})
	return compared, err
}

// A database of an earlier version has its records digested once. What is changed afterwards is not digested anew.
func TestStart_DigestsTheRecordsOfAnEarlierVersion(t *testing.T) {
	for name, form := range map[string]string{
		"before records had a form": "users", "form 1, before users had display names": "record-form-1",
	} {
		t.Run(name, func(t *testing.T) { digestsTheRecordsOfAnEarlierVersion(t, form) })
	}
}

func digestsTheRecordsOfAnEarlierVersion(t *testing.T, form string) {
	dir := storetest.Dir(t)
	db, err := store.Open(t.Context(), store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	userID, gone := store.NewID(), store.NewID()
	err = db.InTx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO users (id, status, language, created_at, created_by, modified_at, modified_by)
			VALUES ($1, 'active', 'en', 0, '', 0, '')`, userID)
		// As earlier versions did: another form, and nothing about most.
		tx.Audit(store.AuditEntry{Action: "users.create", RecType: "users", RecID: userID, After: "another form"})
		tx.Audit(store.AuditEntry{Action: "tasks.create", RecType: "tasks", RecID: gone, After: "another form"})
		tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "audit.form", RecType: "audit", RecID: form + "/begun"})
		tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "audit.form", RecType: "audit", RecID: form})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := checked(t, dir); !errors.Is(err, app.ErrOldForm) {
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
	if n, err := checked(t, dir); err != nil || n < 100 { // the user, the roles and their first grants
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
	if _, err := checked(t, dir); !errors.As(err, &broken) || broken.Type != "users" || broken.ID != userID {
		t.Errorf("a record that was changed between two starts: %v", err)
	}
}
