package enginetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"kontor/store/engine"
	"kontor/store/query"
)

// groups tests that jobs run one after another and are committed together.
var groups = map[string]func(*testing.T, *database){
	"each job sees the jobs before it": func(t *testing.T, db *database) {
		release := db.busyWriter(t)
		var results []chan error
		for i := range 20 {
			results = append(results, db.enqueue(t.Context(), func(tx engine.Tx) error {
				var n int
				if err := query.NewRow(t.Context(), tx, `SELECT COUNT(*) FROM items`, nil).Scan(&n); err != nil {
					return err
				}
				if n != i {
					return fmt.Errorf("job %d sees %d rows", i, n)
				}
				return insert(tx, fmt.Sprint(i))
			}))
		}
		release()
		for _, result := range results {
			none(t, "write", <-result)
		}
	},
	"an uncommitted job is not seen by readers": func(t *testing.T, db *database) {
		written, end, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			done <- db.Write(context.Background(), func(tx engine.Tx) error {
				err := insert(tx, "a")
				close(written)
				<-end
				return err
			})
		}()
		<-written
		db.has(t, 0, "a")
		close(end)
		none(t, "write", <-done)
		db.has(t, 1, "a")
	},
	"a full queue rejects": func(t *testing.T, db *database) {
		release := db.busyWriter(t)
		defer release()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		rejected := make(chan error, 1)
		for db.Stats().Refused == 0 {
			wg.Go(func() {
				if err := db.Write(ctx, nothing); err != nil && !errors.Is(err, context.Canceled) {
					select {
					case rejected <- err:
					default:
					}
				}
			})
			runtime.Gosched()
		}
		err := <-rejected
		is(t, "beyond the queue", err, engine.ErrBusy)
		if !engine.Temporary(err) {
			t.Error("the rejection is not temporary")
		}
		cancel()
		wg.Wait()
	},
}

// hooks tests after-commit functions.
var hooks = map[string]func(*testing.T, *database){
	"functions run in the order of the commits and before the answer": func(t *testing.T, db *database) {
		release := db.busyWriter(t)
		var mu sync.Mutex
		var order []int
		var results []chan error
		for i := range 20 {
			results = append(results, db.enqueue(t.Context(), func(tx engine.Tx) error {
				tx.AfterCommit(func() {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, i)
					if i == 7 {
						panic("an after-commit function that panics")
					}
				})
				return insert(tx, fmt.Sprint(i))
			}))
		}
		release()
		for i, result := range results {
			none(t, "write", <-result)
			mu.Lock()
			if len(order) <= i || order[i] != i {
				t.Errorf("Write %d has returned, functions have run in the order %v", i, order)
			}
			mu.Unlock()
		}
	},
	"functions see the writes of their job": func(t *testing.T, db *database) {
		n := -1
		none(t, "write", db.Write(t.Context(), func(tx engine.Tx) error {
			tx.AfterCommit(func() {
				none(t, "read", db.queryRow(context.Background(), `SELECT COUNT(*) FROM items WHERE name = 'a'`).Scan(&n))
			})
			return insert(tx, "a")
		}))
		if n != 1 {
			t.Errorf("the function saw %d rows, want 1", n)
		}
	},
	"functions of a failed job do not run": func(t *testing.T, db *database) {
		_ = db.Write(t.Context(), func(tx engine.Tx) error {
			tx.AfterCommit(func() { t.Error("the function ran") })
			return errRejected
		})
		none(t, "a later job", db.Write(t.Context(), nothing))
	},
}
