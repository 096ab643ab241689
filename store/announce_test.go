package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
)

func TestAnnounce_ReachesReceiversAfterTheCommitOnly(t *testing.T) {
	db := storetest.Open(t)
	if db.Shared() {
		return // other processes and the order of events: see the tests of that engine
	}
	var got []string
	topic := db.Topic("changes", func(key string) { got = append(got, key) })
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		tx.Announce(topic, "strict")
		tx.AnnounceSoon(topic, "soon")
		tx.Publish(topic, "without a function", nil)
		tx.Publish(topic, "replaced", func() { got = append(got, "local") })
		if len(got) > 0 {
			t.Errorf("%q was received before the commit", got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"strict", "soon", "without a function", "local"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	failure := errors.New("rejected")
	err = db.InTx(t.Context(), func(tx *store.Tx) error {
		tx.Announce(topic, "failed")
		return failure
	})
	if !errors.Is(err, failure) || slices.Contains(got, "failed") {
		t.Errorf("a failed transaction: %v, announced %q", err, got)
	}
}

// An announcement must cost no more than the function of AfterCommit that it replaces.
func TestAnnounce_AllocatesNoMoreThanAfterCommit(t *testing.T) {
	db := storetest.Open(t)
	if db.Shared() {
		return // a notification is written there
	}
	key := "some key"
	receive := func(string) {}
	topic := db.Topic("changes", receive)
	ctx := context.Background()
	count := func(job func(tx *store.Tx)) float64 {
		return testing.AllocsPerRun(200, func() {
			if err := db.InTx(ctx, func(tx *store.Tx) error { job(tx); return nil }); err != nil {
				t.Fatal(err)
			}
		})
	}
	local := func() {}
	if with, before := count(func(tx *store.Tx) { tx.Announce(topic, key) }), count(func(tx *store.Tx) { tx.AfterCommit(func() { receive(key) }) }); with > before {
		t.Errorf("Announce allocates %.0f times, AfterCommit %.0f times", with, before)
	}
	if with, before := count(func(tx *store.Tx) { tx.Publish(topic, key, local) }), count(func(tx *store.Tx) { tx.AfterCommit(local) }); with > before {
		t.Errorf("Publish allocates %.0f times, AfterCommit %.0f times", with, before)
	}
}
