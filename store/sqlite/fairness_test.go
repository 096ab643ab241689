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
)

// by gives a context of a caller.
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

// One caller with slow queries on every reader gives half of them up as soon as somebody else waits.
func TestReaders_OneCallerKeepsAtMostHalfWhileOthersWait(t *testing.T) {
	db := open(t)
	greedy, cancel := context.WithCancel(by(t, "greedy"))
	defer cancel()
	results := slow(greedy, t, db, sqlite.Readers)
	for i := range 20 {
		if err := db.QueryRow(by(t, fmt.Sprint("user ", i)), "SELECT 1").Scan(new(int)); err != nil {
			t.Fatalf("another caller got %v", err)
		}
	}
	for range sqlite.Readers / 2 {
		if err := <-results; !errors.Is(err, store.ErrBusy) || !store.Temporary(err) {
			t.Errorf("a query beyond the share got %v, want ErrBusy", err)
		}
	}
	if n := db.Stats().Revoked; n != sqlite.Readers/2 {
		t.Errorf("%d queries were ended, want %d", n, sqlite.Readers/2)
	}
	cancel()
	for range sqlite.Readers / 2 {
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("a query within the share got %v, want the end of its context", err)
		}
	}
}

// Alone, a caller may use all readers for as long as it likes. What the program does for itself, without a caller, is
// never ended for others.
func TestReaders_ShareBindsOnlyCallersThatKeepOthersWaiting(t *testing.T) {
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

// Callers are served by turns, however many queries one of them has in line before the others came.
func TestReaders_ServeCallersByTurns(t *testing.T) {
	db := open(t)
	var held []*store.Rows
	for i := range sqlite.Readers {
		rows, err := db.Query(by(t, fmt.Sprint("holder ", i)), endless)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, rows)
	}
	var mu sync.Mutex
	var order []string
	var wg sync.WaitGroup
	wait := func(caller string) {
		before := db.Stats().Readers
		wg.Go(func() {
			err := db.View(by(t, caller), func(*store.View) error {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, caller)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		for db.Stats().Readers == before {
			runtime.Gosched()
		}
	}
	for range 10 {
		wait("flood")
	}
	wait("first")
	wait("second")
	held[0].Close() // one reader serves all that wait
	wg.Wait()
	for _, rows := range held {
		rows.Close()
	}
	if got := fmt.Sprint(order[:4]); got != "[flood first second flood]" {
		t.Errorf("served in the order %v", order)
	}
}

// The queries of one caller that may wait are bounded, and those of others are not refused for them.
func TestReaders_BoundTheLineOfOneCaller(t *testing.T) {
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
