package enginetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"kontor/store/engine"
	"kontor/store/query"
)

var errRejected = errors.New("rejected")

// atomicity tests that a job leaves everything or nothing, and others as they are.
var atomicity = map[string]func(*testing.T, *database){
	"a job is stored and read": func(t *testing.T, db *database) {
		none(t, "write", db.write(t.Context(), "a", "b"))
		db.has(t, 2, "a", "b")
	},
	"a job that returns an error leaves nothing": func(t *testing.T, db *database) {
		is(t, "write", db.Write(t.Context(), func(tx engine.Tx) error {
			return errors.Join(insert(tx, "a"), errRejected)
		}), errRejected)
		db.has(t, 0, "a")
	},
	"a job that fails after other statements leaves nothing": func(t *testing.T, db *database) {
		none(t, "write", db.write(t.Context(), "a"))
		for name, sql := range map[string]string{
			"update": `UPDATE items SET amount = amount + 1`,
			"delete": `DELETE FROM items`,
			"insert": `INSERT INTO items (name) SELECT name || ' again' FROM items`,
			"return": `INSERT INTO items (name) VALUES ('returned') RETURNING name`,
		} {
			fail := func(tx engine.Tx) error {
				if err := insert(tx, "before "+name); err != nil {
					return err
				}
				if _, err := query.Exec(t.Context(), tx, sql, nil); err != nil {
					return err
				}
				if err := query.NewRow(t.Context(), tx, `SELECT COUNT(*) FROM items`, nil).Scan(new(int)); err != nil {
					return err
				}
				return errRejected
			}
			is(t, name, db.Write(t.Context(), fail), errRejected)
			release := db.busyWriter(t)
			before := db.enqueue(t.Context(), func(tx engine.Tx) error { return insert(tx, "good before "+name) })
			failed := db.enqueue(t.Context(), fail)
			after := db.enqueue(t.Context(), func(tx engine.Tx) error { return insert(tx, "good after "+name) })
			release()
			none(t, "before "+name, <-before)
			is(t, name+" in a group", <-failed, errRejected)
			none(t, "after "+name, <-after)
			db.has(t, 2, "good before "+name, "good after "+name)
		}
		var n, amount int
		none(t, "read", db.queryRow(t.Context(), `SELECT COUNT(*), SUM(amount) FROM items`).Scan(&n, &amount))
		if n != 9 || amount != 0 {
			t.Errorf("%d items with amount %d, want 9 with 0", n, amount)
		}
	},
	"a job fails when it ignores a failed statement": func(t *testing.T, db *database) {
		var failed, further error // of the last run: an engine may notice the failure late and run the job again
		err := db.Write(t.Context(), func(tx engine.Tx) error {
			_ = insert(tx, "a")
			_ = insert(tx, "a")
			failed = tx.Err()
			further = insert(tx, "b")
			return nil
		})
		is(t, "write", err, engine.ErrDuplicate)
		is(t, "Err after a failed statement", failed, engine.ErrDuplicate)
		if further == nil {
			t.Error("a statement after a failed one was accepted")
		}
		db.has(t, 0, "a", "b")
	},
	"a failed job is undone alone": func(t *testing.T, db *database) {
		release := db.busyWriter(t)
		before := db.enqueue(t.Context(), func(tx engine.Tx) error { return insert(tx, "before") })
		failed := db.enqueue(t.Context(), func(tx engine.Tx) error { return errors.Join(insert(tx, "failed"), errRejected) })
		after := db.enqueue(t.Context(), func(tx engine.Tx) error { return insert(tx, "after") })
		release()
		none(t, "before", <-before)
		is(t, "failed", <-failed, errRejected)
		none(t, "after", <-after)
		db.has(t, 2, "before", "after")
		db.has(t, 0, "failed")
	},
	"a panic reaches its caller and nobody else": func(t *testing.T, db *database) {
		release := db.busyWriter(t)
		good := db.enqueue(t.Context(), func(tx engine.Tx) error { return insert(tx, "good") })
		caught := make(chan any, 1)
		go func() {
			defer func() { caught <- recover() }()
			_ = db.Write(context.Background(), func(tx engine.Tx) error {
				_ = insert(tx, "bad")
				panic("boom")
			})
		}()
		release()
		if v := fmt.Sprint(<-caught); !strings.HasPrefix(v, "boom") || !strings.Contains(v, "enginetest") {
			t.Errorf("the caller got %q, want the panic with its stack", v)
		}
		none(t, "good", <-good)
		db.has(t, 1, "good", "bad")
	},
	"a job that ends its goroutine fails": func(t *testing.T, db *database) {
		err := db.Write(t.Context(), func(tx engine.Tx) error {
			_ = insert(tx, "lost")
			runtime.Goexit()
			return nil
		})
		if err == nil {
			t.Error("no error for a job that did not return")
		}
		none(t, "a later job", db.write(t.Context(), "later"))
		db.has(t, 1, "lost", "later")
	},
	"a transaction ends with its job": func(t *testing.T, db *database) {
		var kept engine.Tx
		none(t, "write", db.Write(t.Context(), func(tx engine.Tx) error { kept = tx; return nil }))
		is(t, "a statement after the job", insert(kept, "a"), engine.ErrClosed)
	},
	"many jobs of which some fail": func(t *testing.T, db *database) {
		var wg sync.WaitGroup
		for i := range 32 {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			wg.Go(func() {
				for n := range 10 {
					early, late := random.IntN(4) == 0, random.IntN(4) == 0
					err := db.Write(t.Context(), func(tx engine.Tx) error {
						if early {
							return errRejected
						}
						err := insert(tx, fmt.Sprint(i, "-", n))
						if err == nil && late {
							err = errRejected
						}
						return err
					})
					if want := early || late; want != errors.Is(err, errRejected) || !want && err != nil {
						t.Errorf("job %d-%d: got %v, want a rejection: %v", i, n, err, want)
					}
				}
			})
		}
		wg.Wait()
		var rows int64
		none(t, "read", db.queryRow(t.Context(), `SELECT COUNT(*) FROM items`).Scan(&rows))
		if writes := db.Stats().Writes; int64(writes) != rows {
			t.Errorf("%d jobs were counted as committed, %d rows are there", writes, rows)
		}
	},
}

// durability tests what is there after the database was closed.
var durability = map[string]func(*testing.T, *database){
	"acknowledged writes are there after a restart": func(t *testing.T, db *database) {
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() { none(t, "write", db.write(t.Context(), fmt.Sprint(i))) })
		}
		wg.Wait()
		none(t, "append", db.Write(t.Context(), func(tx engine.Tx) error { return db.ledger.append(tx, "a") }))
		none(t, "close", db.Close())
		db.start(t)
		if db.report.Loss != nil || len(db.report.Unprotected) != 0 {
			t.Errorf("after an orderly end the start reports %+v", db.report)
		}
		for i := range 50 {
			db.has(t, 1, fmt.Sprint(i))
		}
		none(t, "append again", db.Write(t.Context(), func(tx engine.Tx) error { return db.ledger.append(tx, "b") }))
	},
	"a failed job is answered after what it could read": func(t *testing.T, db *database) {
		release := db.busyWriter(t)
		first := db.enqueue(t.Context(), func(tx engine.Tx) error { return insert(tx, "a") })
		duplicate := db.enqueue(t.Context(), func(tx engine.Tx) error { return insert(tx, "a") })
		release()
		is(t, "the duplicate", <-duplicate, engine.ErrDuplicate)
		db.has(t, 1, "a") // committed before the duplicate was answered
		none(t, "the first", <-first)
	},
}

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
