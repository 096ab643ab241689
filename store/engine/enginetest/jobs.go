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
