package notifications_test

import (
	"context"
	"fmt"
	"testing"

	"kontor/locales"
	"kontor/modules/kit/event"
	"kontor/modules/reach/deliveries"
	"kontor/modules/reach/notifications"
	"kontor/server/access"
	"kontor/store"
	"kontor/store/storetest"
)

func service(t testing.TB, db *store.DB) *notifications.Service {
	t.Helper()
	texts, err := locales.Load()
	if err != nil {
		t.Fatal(err)
	}
	return notifications.New(db, texts, deliveries.New(db, deliveries.Options{}), notifications.Options{})
}

func notify(t testing.TB, db *store.DB, s *notifications.Service, n event.Event) {
	t.Helper()
	ctx := context.Background()
	if err := db.InTx(ctx, func(tx *store.Tx) error { return s.Notify(ctx, tx, n) }); err != nil {
		t.Fatal(err)
	}
}

func newIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = store.NewID()
	}
	return ids
}

func count(t testing.TB, db *store.DB, what string, args ...any) int {
	t.Helper()
	var n int
	if err := db.QueryRow(context.Background(), "SELECT COUNT(*) FROM "+what, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// customerEvent returns the event of a new customer.
func customerEvent(recipients ...string) event.Event {
	id := store.NewID()
	return event.Event{Kind: event.CustomerCreated, CustomerID: id, Type: access.Customers, RecordID: id,
		Recipients: recipients, Args: map[string]any{"Name": "Vreni Muster"}}
}

func TestNotify_WritesOneNotificationForEachRecipient(t *testing.T) {
	db := storetest.Open(t)
	s := service(t, db)
	for _, n := range []int{0, 1, 3, 4, 21, 300} {
		before, notices := count(t, db, "notifications"), count(t, db, "notices")
		users := newIDs(n)
		notify(t, db, s, customerEvent(append(users, users...)...))
		if got := count(t, db, "notifications") - before; got != n {
			t.Errorf("%d recipients, each named twice: got %d rows", n, got)
		}
		if got := count(t, db, "notices") - notices; got != min(n, 1) {
			t.Errorf("%d recipients: got %d parent rows", n, got)
		}
	}
}

func TestNotify_IsRolledBackWithItsTransaction(t *testing.T) {
	db := storetest.Open(t)
	s := service(t, db)
	ctx := context.Background()
	err := db.InTx(ctx, func(tx *store.Tx) error {
		if err := s.Notify(ctx, tx, customerEvent(newIDs(3)...)); err != nil {
			return err
		}
		return fmt.Errorf("no")
	})
	if err == nil || count(t, db, "notifications")+count(t, db, "notices")+count(t, db, "deliveries") != 0 {
		t.Errorf("got %v and rows, want no rows", err)
	}
}
