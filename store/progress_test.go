package store_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kontor/store"
	"kontor/store/storetest"
)

// hang makes each sync wait until the test lets it go.
func hang(db *store.DB) (release func()) {
	end := make(chan struct{})
	db.OnSync(func() error { <-end; return nil })
	return func() { close(end) }
}

// isStalled compares what Ready and Stats say.
func isStalled(t *testing.T, db *store.DB, when string, want bool) {
	t.Helper()
	err := db.Ready(t.Context())
	if got := errors.Is(err, store.ErrStalled); got != want || !want && err != nil {
		t.Errorf("%s: ready says %v, want stalled: %t", when, err, want)
	}
	if s := db.Stats(); s.Stalled != want || s.Stalled && s.Working < 5*time.Second {
		t.Errorf("%s: stalled %t for %s, want %t", when, s.Stalled, s.Working, want)
	}
}

func TestReady_FailsWhileASyncHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := storetest.Open(t)
		release := hang(db)
		first := start(t.Context(), db, func(tx *store.Tx) error { return newRole(t.Context(), tx, "a") })
		synctest.Wait()
		isStalled(t, db, "at once", false)
		time.Sleep(6 * time.Second)
		isStalled(t, db, "after six seconds", true)
		release()
		if err := <-first; err != nil {
			t.Error(err)
		}
		isStalled(t, db, "after the sync", false)
	})
}

func TestReady_FailsWhileAClosureOrAHookNeverReturns(t *testing.T) {
	for _, where := range []string{"closure", "hook"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := storetest.Open(t)
				end := make(chan struct{})
				first := start(t.Context(), db, func(tx *store.Tx) error {
					if where == "closure" {
						<-end
					} else {
						tx.AfterCommit(func() { <-end })
					}
					return nil
				})
				synctest.Wait()
				isStalled(t, db, "at once", false)
				time.Sleep(6 * time.Second)
				isStalled(t, db, "after six seconds", true)
				close(end)
				if err := <-first; err != nil {
					t.Error(err)
				}
				isStalled(t, db, "after its end", false)
			})
		})
	}
}

// Idleness is no stall, however long it lasts.
func TestReady_HoldsWhileNothingIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := storetest.Open(t)
		time.Sleep(time.Hour)
		isStalled(t, db, "after an hour", false)
	})
}

// While the disk hangs, a caller with a deadline is told the truth: that its write was not run, or that nobody knows.
// The idempotency key finds out.
func TestInTx_TellsWhatBecameOfAWriteWhileASyncHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := storetest.Open(t)
		release := hang(db)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		var hooked atomic.Bool
		ran := start(store.WithIdempotency(ctx, claimed), db, func(tx *store.Tx) error {
			tx.AfterCommit(func() { hooked.Store(true) })
			tx.Respond([]byte("made"))
			return newRole(t.Context(), tx, "ran")
		})
		synctest.Wait()
		// The next two share the group that follows; its closures run while the disk is busy.
		second := start(ctx, db, func(tx *store.Tx) error { return newRole(t.Context(), tx, "second") })
		synctest.Wait()
		begun := time.Now()
		for what, result := range map[string]chan error{"a write in the sync": ran, "a write behind it": second} {
			err := <-result
			if !errors.Is(err, store.ErrOutcomeUnknown) || !store.Temporary(err) {
				t.Errorf("%s got %v, want ErrOutcomeUnknown", what, err)
			}
		}
		if waited := time.Since(begun); waited > 10*time.Second {
			t.Errorf("the callers waited for %s", waited)
		}
		if hooked.Load() {
			t.Error("the hook ran before the sync")
		}
		release()
		replay, err := db.Replay(t.Context(), claimed)
		if err != nil || replay == nil || string(replay.Body) != "made" {
			t.Errorf("the key finds %v, %v", replay, err)
		}
		synctest.Wait()
		if n := countRoles(t, db); n != 2 || !hooked.Load() {
			t.Errorf("%d rows, hook ran: %t", n, hooked.Load())
		}
	})
}

// A caller that waits in the queue leaves at its deadline, and its closure never runs.
func TestInTx_LeavesTheQueueWhileAClosureHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := storetest.Open(t)
		end := make(chan struct{})
		first := start(t.Context(), db, func(*store.Tx) error { <-end; return nil })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		err := db.InTx(ctx, func(*store.Tx) error {
			t.Error("the closure ran")
			return nil
		})
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrOutcomeUnknown) {
			t.Errorf("got %v, want the context's error", err)
		}
		close(end)
		if err := <-first; err != nil {
			t.Error(err)
		}
		if err := db.InTx(t.Context(), func(*store.Tx) error { return nil }); err != nil {
			t.Error(err)
		}
	})
}
