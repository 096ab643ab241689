package notifications_test

import (
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store"
)

func TestStream_ReplaysUnsentSystemNotificationsOldestFirst(t *testing.T) {
	s := servertest.Start(t)
	anna := s.User(access.Customer)
	var missed []string
	for range 3 {
		notified(t, s, customerEvent(anna.UserID)) // not a system notification: only the list has it
		missed = append(missed, notified(t, s, systemEvent(anna.UserID))[0])
	}
	l := open(t, s.Address, "GET", anna.Token)
	l.expect("open")
	for _, id := range missed {
		if f := l.expect("message"); f.ID != id {
			t.Fatalf("got %+v, want %s", f, id)
		}
	}
	expectNothing(t, s, anna.UserID, l)
	eventually(t, func() bool { return count(t, s.DB, "notifications WHERE sent_at IS NULL AND system = TRUE") == 0 })
	again := open(t, s.Address, "GET", anna.Token)
	again.expect("open")
	expectNothing(t, s, anna.UserID, again)
}

func TestStream_ReplaysAtMost100(t *testing.T) {
	s := servertest.Start(t)
	anna := s.User(access.Customer)
	for range 103 {
		notify(t, s.DB, s.Notifications, systemEvent(anna.UserID))
	}
	l := open(t, s.Address, "GET", anna.Token)
	l.expect("open")
	for range 100 {
		l.expect("message")
	}
	expectNothing(t, s, anna.UserID, l)
}

func TestStream_ResumesAfterTheLastEvent(t *testing.T) {
	s := servertest.Start(t)
	anna := s.User(access.Customer)
	var ids []string
	for i := range 250 {
		n := customerEvent(anna.UserID)
		if i%2 == 0 {
			n = systemEvent(anna.UserID)
		}
		ids = append(ids, notified(t, s, n)[0])
	}
	l := open(t, s.Address, "GET", anna.Token, "Last-Event-ID", ids[9])
	l.expect("open")
	for i, id := range ids[10:] {
		if f := l.expect("message"); f.ID != id {
			t.Fatalf("frame %d: got %s, want %s", i, f.ID, id)
		}
	}
	expectNothing(t, s, anna.UserID, l) // and it is live
}

func TestStream_SendsResetForAnUnknownEvent(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Customer), s.User(access.Customer)
	foreign := notified(t, s, systemEvent(beat.UserID))[0]
	notified(t, s, systemEvent(anna.UserID))
	for _, id := range []string{foreign, store.NewID(), "nonsense", strings.Repeat("x", 5000)} {
		l := open(t, s.Address, "GET", anna.Token, "Last-Event-ID", id)
		l.expect("open")
		if f := l.expect("reset"); f.member(t, "reason") == "" {
			t.Errorf("got %+v, want a reason", f)
		}
		expectNothing(t, s, anna.UserID, l)
		_ = l.conn.Close()
	}
}

func TestStream_SendsEachNotificationOnceWhileOthersAreWritten(t *testing.T) {
	s := servertest.Start(t, func(o *settings.Settings) { o.Notifications.SSE.ConnectionsPerUser = 100 })
	anna := s.User(access.Customer)
	first := notified(t, s, customerEvent(anna.UserID))[0]
	const notices = 300
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range notices {
			notify(t, s.DB, s.Notifications, customerEvent(anna.UserID))
		}
	}()
	var lines []*streamClient
	for range 12 {
		lines = append(lines, open(t, s.Address, "GET", anna.Token, "Last-Event-ID", first))
	}
	<-done
	ids := allIDs(t, s.DB, anna.UserID)[1:]
	for i, l := range lines {
		l.expect("open")
		for n, id := range ids {
			if f := l.expect("message"); f.ID != id {
				t.Fatalf("stream %d, frame %d: got %s, want %s", i, n, f.ID, id)
			}
		}
	}
	expectNothing(t, s, anna.UserID, lines...)
}

// allIDs returns the ids of a user's notifications in their order.
func allIDs(t testing.TB, db *store.DB, user string) []string {
	t.Helper()
	rows, err := db.Query(t.Context(), `SELECT id FROM notifications WHERE user_id = $1 ORDER BY created_at, id`, user)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}
