package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"kontor/store"
	"kontor/store/sqlite"
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
	db := open(t)
	ctx := t.Context()
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for n := range 20 {
				err := db.InTx(ctx, func(tx *store.Tx) error { return storetest.InsertRole(ctx, tx, fmt.Sprint(i, "-", n)) })
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := storetest.CountRoles(t, db); n != 64*20 {
		t.Errorf("%d rows, want %d", n, 64*20)
	}
	s := db.Stats()
	if s.Writes != 64*20 || float64(s.Commits)/float64(s.Writes) >= 0.2 {
		t.Errorf("%d commits for %d writes, want fewer than one for five", s.Commits, s.Writes)
	}
}

func TestInTx_RefusesWhenTooManyWait(t *testing.T) {
	db := open(t)
	ctx := t.Context()
	free := hold(t, db)
	defer free()
	var wg sync.WaitGroup
	for range sqlite.QueueLength {
		wg.Go(func() {
			if err := db.InTx(ctx, func(*store.Tx) error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	for db.Stats().Queued < sqlite.QueueLength {
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
	db := open(t)
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

func TestAfterCommit_RunsInOrderOfTheCommits(t *testing.T) {
	db := open(t)
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
			return storetest.InsertRole(ctx, tx, fmt.Sprint(i))
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
