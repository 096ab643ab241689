package enginetest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"kontor/store/engine"
	"kontor/store/query"
)

// fairness tests how callers share the readers.
var fairness = map[string]func(*testing.T, *database){
	"one caller keeps at most half of the readers while others wait": func(t *testing.T, db *database) {
		n := db.readers(t)
		greedy, cancel := context.WithCancel(caller(t, "greedy"))
		defer cancel()
		results := db.occupy(greedy, n)
		for i := range 5 {
			none(t, "another caller", db.queryRow(caller(t, fmt.Sprint("user ", i)), "SELECT 1").Scan(new(int)))
		}
		for range n / 2 {
			err := <-results
			is(t, "a query beyond the share", err, engine.ErrBusy)
			if !engine.Temporary(err) {
				t.Error("the end of the query is not temporary")
			}
		}
		if revoked := db.Stats().Revoked; revoked != uint64(n/2) {
			t.Errorf("%d of %d queries were ended, want half", revoked, n)
		}
		cancel()
		for range n - n/2 {
			is(t, "a query within the share", <-results, context.Canceled)
		}
	},
	"queries without a caller are not ended": func(t *testing.T, db *database) {
		n := db.readers(t)
		own, cancel := context.WithCancel(t.Context())
		results := db.occupy(own, n)
		waiting, leave := context.WithTimeout(caller(t, "user"), 300*time.Millisecond)
		defer leave()
		is(t, "the user's query", db.queryRow(waiting, "SELECT 1").Scan(new(int)), context.DeadlineExceeded)
		cancel()
		for range n {
			is(t, "the program's own query", <-results, context.Canceled)
		}
		if revoked := db.Stats().Revoked; revoked != 0 {
			t.Errorf("%d queries were ended", revoked)
		}
	},
	"callers take turns": func(t *testing.T, db *database) {
		var held []*query.Rows
		for i := range db.readers(t) {
			rows, err := query.Query(caller(t, fmt.Sprint("holder ", i)), db.Engine, twoRows, nil)
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, rows)
		}
		var mu sync.Mutex
		var order []string
		var wg sync.WaitGroup
		for _, name := range []string{"flood", "flood", "flood", "flood", "first", "second"} {
			before := db.Stats().Readers
			wg.Go(func() {
				none(t, name, db.View(caller(t, name), func(engine.Source) error {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, name)
					return nil
				}))
			})
			for db.Stats().Readers == before {
				runtime.Gosched()
			}
		}
		held[0].Close() // one reader serves all that wait
		wg.Wait()
		for _, rows := range held {
			rows.Close()
		}
		if got := fmt.Sprint(order[:4]); got != "[flood first second flood]" {
			t.Errorf("served in the order %v", order)
		}
	},
}

// twoRows has a row to wait at, so that it holds its reader until it is closed.
const twoRows = "SELECT 1 UNION ALL SELECT 2"

// readers returns how many readers the pool has: it holds all of them until a query waits, and releases them.
func (db *database) readers(t *testing.T) int {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var held []*query.Rows
	opened := make(chan *query.Rows)
	for {
		go func() {
			rows, _ := query.Query(ctx, db.Engine, twoRows, nil) // nil when it is cancelled
			opened <- rows
		}()
		select {
		case rows := <-opened:
			held = append(held, rows)
			continue
		case <-db.queryWaits(ctx):
		}
		cancel()
		<-opened
		for _, rows := range held {
			rows.Close()
		}
		return len(held)
	}
}

// queryWaits is closed when a query waits for a reader, or ctx ends.
func (db *database) queryWaits(ctx context.Context) <-chan struct{} {
	waits := make(chan struct{})
	go func() {
		defer close(waits)
		for db.Stats().Readers == 0 && ctx.Err() == nil {
			runtime.Gosched()
		}
	}()
	return waits
}

// occupy runs n endless queries and returns when each has a reader. The results come as the queries end.
func (db *database) occupy(ctx context.Context, n int) (results chan error) {
	results = make(chan error, n)
	var running sync.WaitGroup
	running.Add(n)
	for range n {
		go func() {
			results <- db.View(ctx, func(s engine.Source) error {
				running.Done()
				return query.NewRow(ctx, s, endless, nil).Scan(new(int))
			})
		}()
	}
	running.Wait()
	return results
}

// caller returns a context whose statements count for a caller.
func caller(t *testing.T, name string) context.Context {
	return context.WithValue(t.Context(), engine.CallerKey{}, name)
}
