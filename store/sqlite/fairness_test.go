package sqlite_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"kontor/store"
	"kontor/store/sqlite"
)

// by returns a context of a caller.
func by(t *testing.T, caller string) context.Context {
	return context.WithValue(t.Context(), store.CallerKey{}, caller)
}

// slow runs n endless queries of a caller and returns when each has a reader. The results come as the queries end.
func slow(ctx context.Context, t *testing.T, db *store.DB, n int) (results chan error) {
	t.Helper()
	results = make(chan error, n)
	var running sync.WaitGroup
	for range n {
		running.Add(1)
		go func() {
			results <- db.View(ctx, func(v *store.View) error {
				running.Done()
				return v.QueryRow(ctx, "SELECT count(*) FROM ("+endless+")").Scan(new(int))
			})
		}()
	}
	running.Wait()
	return results
}

// While no other caller waits, one caller may use all readers without a limit. Queries without a caller are never ended.
func TestReaders_OnlyCallersThatBlockOthersAreLimited(t *testing.T) {
	for holder, waits := range map[string]string{"greedy": "greedy", "": "user"} {
		t.Run("held by "+holder, func(t *testing.T) {
			db := open(t)
			ctx, cancel := context.WithCancel(by(t, holder))
			results := slow(ctx, t, db, sqlite.Readers)
			further := make(chan error, 1)
			waiting, leave := context.WithCancel(by(t, waits))
			go func() { further <- db.QueryRow(waiting, "SELECT 1").Scan(new(int)) }()
			for db.Stats().Readers == 0 {
				runtime.Gosched()
			}
			engineOf(db).EnforceShares(waits)
			leave()
			cancel()
			if err := <-further; !errors.Is(err, context.Canceled) {
				t.Errorf("the query that waited got %v", err)
			}
			for range sqlite.Readers {
				if err := <-results; !errors.Is(err, context.Canceled) {
					t.Errorf("got %v, want context.Canceled", err)
				}
			}
			if n := db.Stats().Revoked; n != 0 {
				t.Errorf("%d queries were ended", n)
			}
		})
	}
}

// The waiting queries of one caller are bounded, which does not affect other callers.
func TestReaders_BoundTheWaitingQueriesOfOneCaller(t *testing.T) {
	db := open(t)
	var held []*store.Rows
	for range sqlite.Readers {
		rows, err := db.Query(by(t, "flood"), "SELECT 1 UNION ALL SELECT 2")
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, rows)
	}
	var wg sync.WaitGroup
	for range sqlite.MaxWaitingPerCaller {
		wg.Go(func() {
			if err := db.QueryRow(by(t, "flood"), "SELECT 1").Scan(new(int)); err != nil {
				t.Error(err)
			}
		})
	}
	for db.Stats().Readers < sqlite.MaxWaitingPerCaller {
		runtime.Gosched()
	}
	if err := db.QueryRow(by(t, "flood"), "SELECT 1").Scan(new(int)); !errors.Is(err, store.ErrBusy) {
		t.Errorf("got %v, want ErrBusy", err)
	}
	wg.Go(func() {
		if err := db.QueryRow(by(t, "other"), "SELECT 1").Scan(new(int)); err != nil {
			t.Errorf("another caller got %v", err)
		}
	})
	for db.Stats().Readers <= sqlite.MaxWaitingPerCaller {
		runtime.Gosched()
	}
	for _, rows := range held {
		rows.Close()
	}
	wg.Wait()
}
