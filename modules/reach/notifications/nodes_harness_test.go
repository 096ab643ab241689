package notifications_test

import (
	"context"
	"slices"
	"testing"

	"kontor/server/servertest"
	"kontor/store"
)

// twoNodes starts two nodes on one database.
func twoNodes(t testing.TB, options ...servertest.Option) [2]*servertest.Server {
	t.Helper()
	first := servertest.StartShared(t, options...)
	return [2]*servertest.Server{first, servertest.Node(t, first, options...)}
}

// cutAnnouncements ends the connections on which the nodes receive announcements, and returns their number. The nodes connect again
// by themselves.
func cutAnnouncements(t testing.TB, db *store.DB) (n int) {
	t.Helper()
	err := db.QueryRow(context.Background(), `
		SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name LIKE 'kontor bus %'`).Scan(&n)
	if err != nil {
		t.Errorf("cut the announcements: %v", err)
	}
	return n
}

// stored returns the ids of a user's notifications in the order of the streams.
func stored(t testing.TB, db *store.DB, userID string) []string {
	t.Helper()
	ids, err := store.All(context.Background(), db, store.Text, `SELECT id FROM notifications WHERE user_id = $1 ORDER BY created_at, id`, userID)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// compareFrames compares the ids of frames with those of the table.
func compareFrames(t testing.TB, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	position := map[string]int{}
	for i, id := range want {
		position[id] = i
	}
	for i, id := range got {
		if i >= len(want) || want[i] != id {
			t.Errorf("got %d frames of %d; frame %d is that of row %d", len(got), len(want), i, position[id])
			return
		}
	}
	t.Errorf("got %d frames of %d", len(got), len(want))
}
