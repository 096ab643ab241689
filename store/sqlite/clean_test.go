package sqlite_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"

	"kontor/store"
	"kontor/store/storetest"
)

// churn changes and deletes rows in any order, so that SQLite splits pages, moves rows between them and joins pages.
func churn(t *testing.T, db *store.DB, ids []string) {
	t.Helper()
	rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for i, id := range ids {
		switch i % 3 {
		case 0:
			write(t, db, `UPDATE deliveries SET text = $2 WHERE id = $1`, id, strings.Repeat(planted, 1+rand.IntN(60)))
		case 1:
			write(t, db, `UPDATE deliveries SET recipient_key = $2 WHERE id = $1`, id, fmt.Sprint(planted, rand.IntN(1000)))
		default:
			plant(t, db, 1)
		}
	}
}

// After Clean no file holds a value that was overwritten or deleted, however often its row was moved.
func TestClean_LeavesNoCopiesOfMovedRows(t *testing.T) {
	db := storetest.Open(t)
	for round := range 3 {
		ids := plant(t, db, 200)
		churn(t, db, ids)
		if err := db.Clean(t.Context()); err != nil {
			t.Fatal(err)
		}
		if filesWith(t, db.Dir(), planted) == nil {
			t.Fatal("the codes are not in the directory")
		}
		rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		for _, id := range ids[:100] {
			write(t, db, `DELETE FROM deliveries WHERE id = $1`, id)
		}
		write(t, db, `UPDATE deliveries SET recipient = '', recipient_key = '', text = '', html = ''`)
		if err := db.Clean(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := filesWith(t, db.Dir(), planted); left != nil {
			t.Errorf("round %d: codes remain in %v", round, left)
		}
	}
	if err := db.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

// Clean waits for a reader of an earlier state, and does not claim more than it did.
func TestClean_WaitsForReaders(t *testing.T) {
	db := storetest.Open(t)
	err := db.View(t.Context(), func(v *store.View) error {
		var n int
		if err := v.QueryRow(t.Context(), "SELECT COUNT(*) FROM deliveries").Scan(&n); err != nil {
			return err
		}
		plant(t, db, 1)
		write(t, db, "DELETE FROM deliveries")
		short, cancel := context.WithCancel(t.Context())
		cancel()
		if err := db.Clean(short); !errors.Is(err, context.Canceled) {
			t.Errorf("with a context that has ended: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Clean(t.Context()); err != nil {
		t.Error(err)
	}
	if left := filesWith(t, db.Dir(), planted); left != nil {
		t.Errorf("deleted codes remain in %v", left)
	}
}

// Pages from before the file layer cleared unused bytes are cleaned once.
func TestClean_RewritesOldPages(t *testing.T) {
	dir := storetest.Dir(t)
	db := storetest.OpenDir(t, dir)
	ids := plant(t, db, 50)
	write(t, db, `UPDATE deliveries SET text = '', html = ''`)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if n := soil(t, filepath.Join(dir, "kontor.db")); n < 5 {
		t.Fatalf("%d pages were soiled", n)
	}
	db = storetest.OpenDir(t, dir)
	if filesWith(t, dir, planted) == nil {
		t.Fatal("nothing was planted")
	}
	if err := db.Clean(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := filesWith(t, dir, planted); left != nil {
		t.Errorf("old bytes remain in %v", left)
	}
	var n int
	if err := db.QueryRow(t.Context(), `SELECT COUNT(*) FROM deliveries`).Scan(&n); err != nil || n != len(ids) {
		t.Errorf("%d rows, %v", n, err)
	}
	if err := db.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

// soil writes values into the unused bytes of all leaf pages with enough space, with correct checksums.
func soil(t *testing.T, path string) (soiled int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const size = 4096
	for number := 2; number <= len(data)/size; number++ {
		page := data[(number-1)*size : number*size]
		if page[0] != 13 && page[0] != 10 {
			continue
		}
		from, to := 8+2*int(binary.BigEndian.Uint16(page[3:])), int(binary.BigEndian.Uint16(page[5:]))
		if to-from < len(planted) {
			continue
		}
		copy(page[to-len(planted):], planted)
		binary.LittleEndian.PutUint64(page[size-8:], xxhash.Sum64(page[:size-8])^uint64(number)*0x9e3779b97f4a7c15)
		soiled++
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return soiled
}

// A log that another program keeps in use is logged once, and again when it is within its limit.
func TestLog_AlarmAboutItsSize(t *testing.T) {
	var log lockedLog
	const limit = 200 << 10
	db, err := openWith(t.Context(), store.Options{Dir: storetest.Dir(t), LogLimit: limit, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	engineOf(db).HoldCheckpoints()
	storetest.Audit(t, db, 1)
	err = db.View(t.Context(), func(v *store.View) error {
		var n int
		if err := v.QueryRow(t.Context(), "SELECT COUNT(*) FROM roles").Scan(&n); err != nil {
			return err
		}
		for range 50 {
			storetest.Audit(t, db, 1)
			engineOf(db).Checkpoint()
		}
		s := db.Stats()
		if err := db.CheckLog(t.Context()); err == nil || !s.LogOverLimit || s.LogBytes <= limit || s.LogUncopied == 0 {
			t.Errorf("with a reader that stays: %+v, check %v", s, err)
		}
		if err := db.Ready(t.Context()); err != nil {
			t.Errorf("not ready: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	engineOf(db).Checkpoint()
	storetest.Audit(t, db, 1)
	storetest.Audit(t, db, 1) // before it, the writer has looked at the log after the first one
	s := db.Stats()
	if err := db.CheckLog(t.Context()); err != nil || s.LogOverLimit {
		t.Errorf("without the reader: %+v, check %v", s, err)
	}
	if s.Sync.Count < 50 || s.Sync.Total < s.Sync.Last || s.Checkpoint.Count == 0 || s.Checkpoint.Total <= 0 {
		t.Errorf("syncs %+v, checkpoints %+v", s.Sync, s.Checkpoint)
	}
	for text, want := range map[string]int{"is larger than its limit": 1, "within its limit again": 1} {
		if n := strings.Count(log.String(), text); n != want {
			t.Errorf("the log says %q %d times, want %d", text, n, want)
		}
	}
}

// A start copies the log into the database and empties it before it serves.
func TestOpen_EmptiesTheLog(t *testing.T) {
	dir := crashed(t, 0)
	path := filepath.Join(dir, "kontor.db-wal")
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		t.Fatalf("there is no log to be emptied: %v", err)
	}
	db := openDir(t, dir)
	if info, err := os.Stat(path); err != nil || info.Size() != 0 {
		t.Errorf("after the start the log has %d bytes, %v", info.Size(), err)
	}
	if n, err := db.VerifyAudit(t.Context()); err != nil || n != 10 {
		t.Errorf("%d entries, %v", n, err)
	}
}

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
