package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"kontor/store"
	"kontor/store/sqlite"
	"kontor/store/storetest"
)

// hold keeps the writer busy in a job until the returned function is called, which waits for the end of the job.
func hold(t *testing.T, db *store.DB) (free func()) {
	t.Helper()
	begun, end, done := make(chan struct{}), make(chan struct{}), make(chan error)
	begin := sync.OnceFunc(func() { close(begun) }) // the job may run twice
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
			t.Errorf("job that held the writer: %v", err)
		}
	})
}

// enqueue calls InTx in a goroutine of its own and returns when the job waits in the queue.
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

func TestInTx_RejectsWhenTooManyWait(t *testing.T) {
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
		t.Errorf("%d rejected, want 1", n)
	}
}
