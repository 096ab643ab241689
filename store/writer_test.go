package store_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"kontor/store"
	"kontor/store/storetest"
)

// hold keeps the writer busy in a closure until the function it gives is called, which waits for the
// closure's end.
func hold(t *testing.T, db *store.DB) (free func()) {
	t.Helper()
	begun, end, done := make(chan struct{}), make(chan struct{}), make(chan error)
	begin := sync.OnceFunc(func() { close(begun) }) // the closure may run twice
	go func() {
		done <- db.InTx(context.Background(), func(*store.Tx) error {
			begin()
			<-end
			return nil
		})
	}()
	<-begun
	return sync.OnceFunc(func() {
		close(end)
		if err := <-done; err != nil {
			t.Errorf("closure that held the writer: %v", err)
		}
	})
}

// enqueue calls InTx in a goroutine of its own and returns once the closure waits in the queue.
func enqueue(db *store.DB, fn func(tx *store.Tx) error) (result chan error) {
	result = make(chan error, 1)
	before := db.Stats().Queued
	go func() { result <- db.InTx(context.Background(), fn) }()
	for db.Stats().Queued == before {
		runtime.Gosched()
	}
	return result
}

func TestInTx_CommitsInGroups(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for n := range 20 {
				err := db.InTx(ctx, func(tx *store.Tx) error { return newRole(ctx, tx, fmt.Sprint(i, "-", n)) })
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := countRoles(t, db); n != 64*20 {
		t.Errorf("%d rows, want %d", n, 64*20)
	}
	s := db.Stats()
	if s.Writes != 64*20 || float64(s.Commits)/float64(s.Writes) >= 0.2 {
		t.Errorf("%d commits for %d writes, want fewer than one for five", s.Commits, s.Writes)
	}
}

func TestInTx_FailingClosureRollsBackAlone(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	refused := errors.New("refused")
	free := hold(t, db)
	good := enqueue(db, func(tx *store.Tx) error { return newRole(ctx, tx, "good") })
	bad := enqueue(db, func(tx *store.Tx) error {
		if err := newRole(ctx, tx, "bad"); err != nil {
			return err
		}
		tx.Audit(store.AuditEntry{Action: "bad"})
		tx.AfterCommit(func() { t.Error("hook of a closure that failed was called") })
		return refused
	})
	alsoGood := enqueue(db, func(tx *store.Tx) error { return newRole(ctx, tx, "also good") })
	before := db.Stats().Commits
	free()
	if err := <-good; err != nil {
		t.Error(err)
	}
	if err := <-bad; !errors.Is(err, refused) {
		t.Errorf("got %v, want the closure's own error", err)
	}
	if err := <-alsoGood; err != nil {
		t.Error(err)
	}
	if n := db.Stats().Commits - before; n != 1 {
		t.Errorf("%d commits, want one for the group", n)
	}
	if n := countRoles(t, db); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
	if n, err := db.VerifyAudit(ctx); n != 0 || err != nil {
		t.Errorf("%d audit entries, err %v: the failed closure left one", n, err)
	}
}

func TestInTx_PanicReachesItsCallerOnly(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	free := hold(t, db)
	good := enqueue(db, func(tx *store.Tx) error { return newRole(ctx, tx, "good") })
	caught := make(chan any, 1)
	go func() {
		defer func() { caught <- recover() }()
		db.InTx(ctx, func(tx *store.Tx) error {
			newRole(ctx, tx, "bad")
			panic("boom")
		})
	}()
	free()
	if v := <-caught; !strings.HasPrefix(fmt.Sprint(v), "boom") {
		t.Errorf("caller got %v, want the panic", v)
	}
	if err := <-good; err != nil {
		t.Error(err)
	}
	if n := countRoles(t, db); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

func TestInTx_SurvivesGoexit(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	err := db.InTx(ctx, func(tx *store.Tx) error {
		newRole(ctx, tx, "lost")
		runtime.Goexit() // as t.FailNow does
		return nil
	})
	if err == nil {
		t.Error("no error for a closure that never returned")
	}
	if err := db.InTx(ctx, func(tx *store.Tx) error { return newRole(ctx, tx, "later") }); err != nil {
		t.Errorf("the writer is gone: %v", err)
	}
	if n := countRoles(t, db); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

func TestInTx_RefusesWhenTooManyWait(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	free := hold(t, db)
	defer free()
	var wg sync.WaitGroup
	for range store.QueueLength {
		wg.Go(func() {
			if err := db.InTx(ctx, func(*store.Tx) error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	for db.Stats().Queued < store.QueueLength {
		runtime.Gosched()
	}
	err := db.InTx(ctx, func(*store.Tx) error { return nil })
	if !errors.Is(err, store.ErrBusy) || !store.Temporary(err) {
		t.Errorf("got %v, want ErrBusy", err)
	}
	free()
	wg.Wait()
	if n := db.Stats().Refused; n != 1 {
		t.Errorf("%d refused, want 1", n)
	}
}

func TestInTx_CancelledBeforeItsTurnNeverRuns(t *testing.T) {
	db := storetest.Open(t)
	free := hold(t, db)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() {
		result <- db.InTx(ctx, func(*store.Tx) error {
			t.Error("closure ran")
			return nil
		})
	}()
	for db.Stats().Queued == 0 {
		runtime.Gosched()
	}
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	free()
	// A later closure shows that the queue was worked through.
	if err := db.InTx(t.Context(), func(*store.Tx) error { return nil }); err != nil {
		t.Error(err)
	}
}

func TestInTx_FailedStatementFailsTheClosure(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	err := db.InTx(ctx, func(tx *store.Tx) error {
		newRole(ctx, tx, "a")
		newRole(ctx, tx, "a") // its error is dropped
		return nil
	})
	if !errors.Is(err, store.ErrDuplicate) {
		t.Errorf("got %v, want ErrDuplicate", err)
	}
	if n := countRoles(t, db); n != 0 {
		t.Errorf("%d rows, want none", n)
	}
}

func TestAfterCommit_RunsInOrderOfTheCommits(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	free := hold(t, db)
	var mu sync.Mutex
	var order []int
	var results []chan error
	for i := range 20 {
		results = append(results, enqueue(db, func(tx *store.Tx) error {
			tx.AfterCommit(func() {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
				if i == 7 {
					panic("a hook that panics")
				}
			})
			return newRole(ctx, tx, fmt.Sprint(i))
		}))
	}
	free()
	for i, r := range results {
		if err := <-r; err != nil {
			t.Error(err)
		}
		mu.Lock()
		if !slices.Contains(order, i) {
			t.Errorf("InTx %d returned before its hook ran", i)
		}
		mu.Unlock()
	}
	if !slices.IsSorted(order) || len(order) != 20 {
		t.Errorf("hooks ran in the order %v", order)
	}
}

func TestInTx_DiskFull(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	pages := func(n int) {
		t.Helper()
		if err := db.Pragma(fmt.Sprint("max_page_count = ", n)); err != nil {
			t.Fatal(err)
		}
	}
	pages(1) // SQLite takes the present size then
	big := strings.Repeat("x", 1<<20)
	free := hold(t, db)
	runs := 0
	first := enqueue(db, func(tx *store.Tx) error {
		runs++
		return newRole(ctx, tx, "first")
	})
	full := enqueue(db, func(tx *store.Tx) error { return newRole(ctx, tx, big) })
	last := enqueue(db, func(tx *store.Tx) error { return newRole(ctx, tx, "last") })
	free()
	if err := <-full; !errors.Is(err, store.ErrFull) || !store.Temporary(err) {
		t.Errorf("got %v, want ErrFull", err)
	}
	for _, r := range []chan error{first, last} {
		if err := <-r; err != nil {
			t.Errorf("a small write beside the one that did not fit: %v", err)
		}
	}
	if runs != 2 {
		t.Errorf("the closure whose transaction was lost ran %d times, want 2", runs)
	}
	if n := countRoles(t, db); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}

	if err := db.InTx(ctx, func(tx *store.Tx) error { return newRole(ctx, tx, big) }); !errors.Is(err, store.ErrFull) {
		t.Errorf("got %v, want ErrFull", err)
	}
	if err := db.Ready(ctx); !errors.Is(err, store.ErrFull) {
		t.Errorf("ready says %v, want ErrFull", err)
	}

	pages(1 << 30)
	if err := db.Ready(ctx); err != nil {
		t.Errorf("ready with room again: %v", err)
	}
	if err := db.InTx(ctx, func(tx *store.Tx) error { return newRole(ctx, tx, big) }); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

func TestReady_FollowsTheStorage(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	queryOnly := func(value string) {
		t.Helper()
		if err := db.Pragma("query_only = " + value); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Ready(ctx); err != nil {
		t.Errorf("at first: %v", err)
	}
	queryOnly("ON")
	err := db.InTx(ctx, func(tx *store.Tx) error { return newRole(ctx, tx, "a") })
	if !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("got %v, want ErrReadOnly", err)
	}
	if n := countRoles(t, db); n != 0 {
		t.Errorf("%d rows, want none", n)
	}
	if err := db.Ready(ctx); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("ready says %v, want ErrReadOnly", err)
	}
	queryOnly("OFF")
	if err := db.Ready(ctx); err != nil {
		t.Errorf("with a storage that writes again: %v", err)
	}
}

func TestClose_AnswersWhatItTookInAndRefusesTheRest(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	db := storetest.Open(t)
	ctx := t.Context()
	free := hold(t, db)
	waiting := enqueue(db, func(tx *store.Tx) error { return newRole(ctx, tx, "a") })
	closed := make(chan error)
	go func() { closed <- db.Close() }()
	free()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err := <-waiting; err != nil && !errors.Is(err, store.ErrClosed) {
		t.Error(err)
	}
	if err := db.InTx(ctx, func(*store.Tx) error { return nil }); !errors.Is(err, store.ErrClosed) {
		t.Errorf("InTx gives %v, want ErrClosed", err)
	}
	if err := db.QueryRow(ctx, "SELECT 1").Scan(new(int)); !errors.Is(err, store.ErrClosed) {
		t.Errorf("QueryRow gives %v, want ErrClosed", err)
	}
	if err := db.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestCheckpoint_ComesWhenNothingIsWritten(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	if err := db.InTx(ctx, func(tx *store.Tx) error { return newRole(ctx, tx, "a") }); err != nil {
		t.Fatal(err)
	}
	for db.Stats().Checkpoints == 0 {
		if t.Context().Err() != nil {
			t.Fatal("the log was never copied")
		}
		runtime.Gosched()
	}
}
