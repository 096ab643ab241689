package store_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
)

func TestMemo_LoadsOncePerVersion(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	loads := 0
	count := func() int64 {
		t.Helper()
		n, err := db.Memo(ctx, "roles", []string{"roles"}, func() (n int64, err error) {
			loads++
			return n, db.QueryRow(ctx, `SELECT COUNT(*) FROM roles`).Scan(&n)
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	count()
	count()
	if loads != 1 {
		t.Errorf("%d loads, want 1", loads)
	}
	if err := db.InTx(ctx, func(tx *store.Tx) error { return storetest.InsertRole(ctx, tx, "a") }); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 1 || loads != 2 {
		t.Errorf("after a commit: %d by %d loads", n, loads)
	}
	failed := errors.New("failed")
	for range 2 {
		_, err := db.Memo(ctx, "other", nil, func() (int64, error) { loads++; return 0, failed })
		if !errors.Is(err, failed) {
			t.Error(err)
		}
	}
	if loads != 4 {
		t.Error("an error was remembered")
	}
}

// A caller that has committed a row gets a number that includes it, whatever others load at the same time.
func TestMemo_NeverOlderThanTheCallersOwnCommit(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	var committed atomic.Int64
	stop := make(chan struct{})
	var readers, writers sync.WaitGroup
	count := func() (int64, error) {
		return db.Memo(ctx, "roles", []string{"roles"}, func() (n int64, err error) {
			return n, db.QueryRow(ctx, `SELECT COUNT(*) FROM roles`).Scan(&n)
		})
	}
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				least := committed.Load()
				if n, err := count(); err != nil || n < least {
					t.Errorf("%d rows, err %v; at least %d were committed", n, err, least)
					return
				}
			}
		})
	}
	for range 4 {
		writers.Go(func() {
			for range 25 {
				if err := db.InTx(ctx, func(tx *store.Tx) error { return storetest.InsertRole(ctx, tx, store.NewID()) }); err != nil {
					t.Error(err)
				}
				least := committed.Add(1)
				if n, err := count(); err != nil || n < least {
					t.Errorf("%d rows, err %v; at least %d were committed", n, err, least)
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
}

func TestMemo_WaiterLeavesWithItsContext(t *testing.T) {
	db := storetest.Open(t)
	loading, end := make(chan struct{}), make(chan struct{})
	first := make(chan error)
	go func() {
		_, err := db.Memo(context.Background(), "k", nil, func() (int64, error) {
			close(loading)
			<-end
			return 1, nil
		})
		first <- err
	}()
	<-loading
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := db.Memo(ctx, "k", nil, func() (int64, error) { return 2, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
	close(end)
	if err := <-first; err != nil {
		t.Error(err)
	}
}
