package enginetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"kontor/store/engine"
	"kontor/store/query"
)

// endless does not end by itself, and endlessRows returns rows without an end.
const (
	endless     = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n`
	endlessRows = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n`
)

// deadlines tests what a context that ends does to a job and to a statement.
var deadlines = map[string]func(*testing.T, *database){
	"a context that has ended runs nothing": func(t *testing.T, db *database) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		is(t, "write", db.Write(ctx, func(engine.Tx) error { t.Error("the job ran"); return nil }), context.Canceled)
		is(t, "read", db.queryRow(ctx, "SELECT 1").Scan(new(int)), context.Canceled)
		is(t, "view", db.View(ctx, func(engine.Source) error { t.Error("the view ran"); return nil }), context.Canceled)
	},
	"a job whose context ends in the queue does not run": func(t *testing.T, db *database) {
		release := db.busyWriter(t)
		ctx, cancel := context.WithCancel(t.Context())
		result := db.enqueue(ctx, func(engine.Tx) error { t.Error("the job ran"); return nil })
		cancel()
		is(t, "write", <-result, context.Canceled)
		release()
		none(t, "a later job", db.Write(t.Context(), nothing)) // the queue was worked off
	},
	"a job is not interrupted": func(t *testing.T, db *database) {
		ctx, cancel := context.WithCancel(t.Context())
		err := db.Write(ctx, func(tx engine.Tx) error {
			cancel()
			return insert(tx, "a")
		})
		none(t, "write", err)
		db.has(t, 1, "a")
	},
	"a statement ends with its context": func(t *testing.T, db *database) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		is(t, "read", db.queryRow(ctx, endless).Scan(new(int)), context.DeadlineExceeded)
		err := db.View(t.Context(), func(engine.Source) error { return nil })
		none(t, "a later view", err)
		none(t, "a later read", db.queryRow(t.Context(), "SELECT 1").Scan(new(int)))
	},
	"a view ends with its context": func(t *testing.T, db *database) {
		ctx, cancel := context.WithCancel(t.Context())
		err := db.View(ctx, func(s engine.Source) error {
			cancel()
			return query.NewRow(ctx, s, endless, nil).Scan(new(int))
		})
		is(t, "view", err, context.Canceled)
	},
}

// nesting tests calls of the database from within its own functions.
var nesting = map[string]func(*testing.T, *database){
	"a job that calls the database is rejected": func(t *testing.T, db *database) {
		for name, call := range map[string]func() error{
			"Write":   func() error { return db.Write(context.Background(), nothing) },
			"View":    func() error { return db.View(context.Background(), func(engine.Source) error { return nil }) },
			"Prepare": func() error { return db.queryRow(context.Background(), "SELECT 1").Scan(new(int)) },
		} {
			var nested error
			err := db.Write(t.Context(), func(tx engine.Tx) error {
				nested = call()
				if !db.InJob() {
					t.Error("InJob is false in a job")
				}
				return insert(tx, name)
			})
			none(t, "the job around "+name, err)
			is(t, name, nested, engine.ErrNested)
			if engine.Temporary(nested) {
				t.Errorf("%s: ErrNested counts as temporary", name)
			}
		}
		if db.InJob() {
			t.Error("InJob is true outside a job")
		}
		db.has(t, 3, "Write", "View", "Prepare")
	},
	"an after-commit function may read and not write": func(t *testing.T, db *database) {
		var written, read error
		none(t, "write", db.Write(t.Context(), func(tx engine.Tx) error {
			tx.AfterCommit(func() {
				written = db.Write(context.Background(), nothing)
				read = db.queryRow(context.Background(), "SELECT 1").Scan(new(int))
			})
			return insert(tx, "a")
		}))
		is(t, "write in the function", written, engine.ErrNested)
		none(t, "read in the function", read)
	},
	"nesting is recognised after a job has ended its goroutine": func(t *testing.T, db *database) {
		_ = db.Write(t.Context(), func(engine.Tx) error { runtime.Goexit(); return nil })
		var nested error
		none(t, "write", db.Write(t.Context(), func(engine.Tx) error {
			nested = db.Write(context.Background(), nothing)
			return nil
		}))
		is(t, "write in the job", nested, engine.ErrNested)
	},
}

// versions tests the numbers of tables.
var versions = map[string]func(*testing.T, *database){
	"a version grows with the commits of its tables": func(t *testing.T, db *database) {
		items, both, children := db.version(t, "items"), db.version(t, "items", "children"), db.version(t, "children")
		is(t, "write", db.Write(t.Context(), func(tx engine.Tx) error {
			return errors.Join(insert(tx, "a"), errRejected)
		}), errRejected)
		if db.version(t, "items") != items {
			t.Error("a failed job has changed the version")
		}
		none(t, "write", db.write(t.Context(), "a"))
		if db.version(t, "items") <= items || db.version(t, "items", "children") <= both || db.version(t, "children") != children {
			t.Error("the versions do not follow the commit")
		}
	},
	"a version is new when a caller has its answer": func(t *testing.T, db *database) {
		for i := range 50 {
			before := db.version(t, "items")
			none(t, "write", db.write(t.Context(), fmt.Sprint(i)))
			if db.version(t, "items") <= before {
				t.Fatalf("after write %d the version is still %d", i, before)
			}
		}
	},
}

// lifecycle tests the end of an engine, and what it reports of itself.
var lifecycle = map[string]func(*testing.T, *database){
	"Close answers what was accepted and rejects the rest": func(t *testing.T, db *database) {
		release := db.busyWriter(t)
		hooked := false
		accepted := db.enqueue(t.Context(), func(tx engine.Tx) error {
			tx.AfterCommit(func() { hooked = true })
			return insert(tx, "a")
		})
		closed := make(chan error, 1)
		go func() { closed <- db.Close() }()
		release()
		none(t, "close", <-closed)
		none(t, "the accepted job", <-accepted)
		if !hooked {
			t.Error("Close has returned before an after-commit function")
		}
		is(t, "write", db.Write(t.Context(), nothing), engine.ErrClosed)
		is(t, "read", db.queryRow(t.Context(), "SELECT 1").Scan(new(int)), engine.ErrClosed)
		is(t, "view", db.View(t.Context(), func(engine.Source) error { return nil }), engine.ErrClosed)
		none(t, "a second Close", db.Close())
	},
	"an idle engine is ready": func(t *testing.T, db *database) {
		none(t, "ready", db.Ready(t.Context()))
		none(t, "write", db.write(t.Context(), "a"))
		none(t, "ready after a write", db.Ready(t.Context()))
	},
	"failed jobs leave an engine ready": func(t *testing.T, db *database) {
		_ = db.write(t.Context(), "a", "a")
		none(t, "ready", db.Ready(t.Context()))
	},
	"statements of callers are listed once and sorted": func(t *testing.T, db *database) {
		const read = "SELECT amount FROM items WHERE name = $1"
		for range 3 {
			if err := db.queryRow(t.Context(), read, "x").Scan(new(int)); !errors.Is(err, engine.ErrNotFound) {
				t.Fatal(err)
			}
		}
		none(t, "write", db.write(t.Context(), "a"))
		texts, err := db.Statements(t.Context())
		none(t, "statements", err)
		found := map[string]int{}
		for i, text := range texts {
			found[text]++
			if i > 0 && texts[i-1] >= text {
				t.Errorf("%q comes after %q", text, texts[i-1])
			}
		}
		for _, want := range []string{read, insertItem} {
			if found[want] != 1 {
				t.Errorf("%q is listed %d times", want, found[want])
			}
		}
		for _, own := range []string{"BEGIN", "COMMIT", "ROLLBACK"} {
			if found[own] != 0 {
				t.Errorf("%q is the engine's own", own)
			}
		}
	},
}
