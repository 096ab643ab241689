package sqlite_test

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

// hang makes each sync wait until the test releases it.
func hang(db *store.DB) (release func()) {
	end := make(chan struct{})
	engineOf(db).OnSync(func() error { <-end; return nil })
	return func() { close(end) }
}

// isStalled compares the results of Ready and Stats.
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
		db := open(t)
		release := hang(db)
		first := start(t.Context(), db, func(tx *store.Tx) error { return storetest.InsertRole(t.Context(), tx, "a") })
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

func TestReady_FailsWhileAJobOrAHookHangs(t *testing.T) {
	for _, where := range []string{"job", "hook"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := open(t)
				end := make(chan struct{})
				first := start(t.Context(), db, func(tx *store.Tx) error {
					if where == "job" {
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
				synctest.Wait() // The caller may learn of the end before the writer is done.
				isStalled(t, db, "after its end", false)
			})
		})
	}
}

// An idle database never counts as stalled.
func TestReady_SucceedsWhileNothingIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		time.Sleep(time.Hour)
		isStalled(t, db, "after an hour", false)
	})
}

// While the disk hangs, a caller with a deadline learns that its write did not run, or that the outcome is unknown. A
// repetition with the idempotency key finds the outcome.
func TestInTx_ReturnsErrOutcomeUnknownWhileASyncHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		release := hang(db)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		var hooked atomic.Bool
		ran := start(store.WithIdempotency(ctx, claimed), db, func(tx *store.Tx) error {
			tx.AfterCommit(func() { hooked.Store(true) })
			tx.Respond([]byte("made"))
			return storetest.InsertRole(t.Context(), tx, "ran")
		})
		synctest.Wait()
		// The next two share the following group; its jobs run while the disk is busy.
		second := start(ctx, db, func(tx *store.Tx) error { return storetest.InsertRole(t.Context(), tx, "second") })
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
		if n := storetest.CountRoles(t, db); n != 2 || !hooked.Load() {
			t.Errorf("%d rows, hook ran: %t", n, hooked.Load())
		}
	})
}

// A caller that waits in the queue leaves at its deadline, and its job never runs.
func TestInTx_LeavesTheQueueAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		end := make(chan struct{})
		first := start(t.Context(), db, func(*store.Tx) error { <-end; return nil })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		err := db.InTx(ctx, func(*store.Tx) error {
			t.Error("the job ran")
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
