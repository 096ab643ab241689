package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
)

// slowDisk makes each sync wait until the test releases it.
type slowDisk struct{ asked, done chan struct{} }

func newSlowDisk(db *store.DB) slowDisk {
	d := slowDisk{asked: make(chan struct{}), done: make(chan struct{})}
	engineOf(db).OnSync(func() error {
		d.asked <- struct{}{}
		<-d.done
		return nil
	})
	return d
}

// unanswered fails the test when a call of InTx has returned.
func unanswered(t *testing.T, what string, result chan error) {
	t.Helper()
	select {
	case err := <-result:
		t.Errorf("%s was answered before the sync: %v", what, err)
	default:
	}
}

func start(ctx context.Context, db *store.DB, fn func(tx *store.Tx) error) chan error {
	result := make(chan error, 1)
	go func() { result <- db.InTx(ctx, fn) }()
	return result
}

func TestSync_PrecedesTheAnswerAndOverlapsTheNextGroup(t *testing.T) {
	db := open(t)
	ctx := t.Context()
	disk := newSlowDisk(db)
	hooked := false
	first := start(ctx, db, func(tx *store.Tx) error {
		tx.AfterCommit(func() { hooked = true })
		return storetest.InsertRole(ctx, tx, "first")
	})
	<-disk.asked
	ran := make(chan struct{})
	second := start(ctx, db, func(tx *store.Tx) error {
		defer close(ran)
		return storetest.InsertRole(ctx, tx, "second")
	})
	<-ran // while the first is being synced
	unanswered(t, "the first", first)
	unanswered(t, "the second", second)
	if hooked {
		t.Error("the hook ran before the sync")
	}
	disk.done <- struct{}{}
	if err := <-first; err != nil || !hooked {
		t.Errorf("the first: %v, hook ran: %v", err, hooked)
	}
	<-disk.asked
	unanswered(t, "the second", second)
	disk.done <- struct{}{}
	if err := <-second; err != nil {
		t.Error(err)
	}
	if n := db.Stats().Commits; n != 2 {
		t.Errorf("%d commits, want 2", n)
	}
}

// A job that fails because of another's write, or that gets its answer, is answered after that write is on the disk.
func TestSync_PrecedesRejectionsAndReplays(t *testing.T) {
	db := open(t)
	ctx := store.WithIdempotency(t.Context(), claimed)
	disk := newSlowDisk(db)
	first := make(chan error, 1)
	go func() {
		first <- db.InTx(ctx, func(tx *store.Tx) error {
			tx.Respond(map[string]string{"name": "a"})
			return storetest.InsertRole(ctx, tx, "a")
		})
	}()
	<-disk.asked
	duplicate := start(t.Context(), db, func(tx *store.Tx) error { return storetest.InsertRole(t.Context(), tx, "a") })
	replay := start(store.WithIdempotency(t.Context(), claimed), db, func(*store.Tx) error { return errors.New("job of a replay ran") })
	outside := make(chan error, 1)
	go func() {
		r, err := db.Replay(t.Context(), claimed)
		if err == nil && r == nil {
			err = errors.New("no replay")
		}
		outside <- err
	}()
	ran := make(chan struct{})
	last := start(t.Context(), db, func(*store.Tx) error { close(ran); return nil })
	<-ran
	for what, result := range map[string]chan error{"the duplicate": duplicate, "the replay": replay, "the replay outside": outside} {
		unanswered(t, what, result)
	}
	disk.done <- struct{}{}
	if err := errors.Join(<-first, <-outside, <-last); err != nil {
		t.Error(err)
	}
	if err := <-duplicate; !errors.Is(err, store.ErrDuplicate) {
		t.Errorf("duplicate: %v", err)
	}
	var r *store.Replay
	if err := <-replay; !errors.As(err, &r) {
		t.Errorf("replay: %v", err)
	}
}

// Jobs that fail, before or after they have written, leave neither rows nor audit entries.
func TestInTx_FailuresLeaveNothing(t *testing.T) {
	db := open(t)
	ctx := t.Context()
	refused := errors.New("refused")
	var wg sync.WaitGroup
	for i := range 64 {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		wg.Go(func() {
			for n := range 20 {
				early, late := random.IntN(4) == 0, random.IntN(4) == 0
				err := db.InTx(ctx, func(tx *store.Tx) error {
					if early {
						return refused
					}
					name := fmt.Sprint(i, "-", n)
					if err := storetest.InsertRole(ctx, tx, name); err != nil {
						return err
					}
					tx.Audit(store.AuditEntry{Action: "create", RecID: name})
					if late {
						return refused
					}
					return nil
				})
				if failed := early || late; failed != errors.Is(err, refused) {
					t.Errorf("%d-%d failed: %v, got %v", i, n, failed, err)
				}
			}
		})
	}
	wg.Wait()
	roles := int64(storetest.CountRoles(t, db))
	if n, err := db.VerifyAudit(ctx); n != roles || err != nil {
		t.Errorf("%d audit entries for %d roles, err %v", n, roles, err)
	}
	if writes := db.Stats().Writes; int64(writes) != roles {
		t.Errorf("%d writes counted for %d roles", writes, roles)
	}
}
