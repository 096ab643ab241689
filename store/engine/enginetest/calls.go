package enginetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
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
}

// announcements tests the guarantees within one process. An engine whose database is shared tests those between processes.
var announcements = map[string]func(*testing.T, *database){
	"a strict and a soon announcement are received before the answer": func(t *testing.T, db *database) {
		var got keys
		topic := db.Topic("changes", got.add)
		for _, delivery := range []engine.Delivery{engine.Strict, engine.Soon} {
			key := fmt.Sprint("key ", delivery)
			none(t, "write", db.announce(topic, key, delivery))
			if !slices.Contains(got.all(), key) {
				t.Errorf("%q is missing after the answer: %q", key, got.all())
			}
		}
	},
	"published announcements arrive in the order of the commits": func(t *testing.T, db *database) {
		var got keys
		arrived := make(chan struct{}, 100)
		topic := db.Topic("changes", func(string) { t.Error("a receiver was called instead of the local function") })
		release := db.busyWriter(t)
		var results []chan error
		var want []string
		for i := range 20 {
			key := fmt.Sprint(i)
			want = append(want, key)
			results = append(results, db.enqueue(t.Context(), func(tx engine.Tx) error {
				tx.Announce(engine.Announcement{Topic: topic, Key: key, Delivery: engine.Ordered, Local: func() {
					got.add(key)
					arrived <- struct{}{}
				}})
				return insert(tx, key)
			}))
		}
		release()
		for _, result := range results {
			none(t, "write", <-result)
		}
		for range results {
			<-arrived
		}
		if !slices.Equal(got.all(), want) {
			t.Errorf("got %q, want %q", got.all(), want)
		}
	},
	"a publication without a local function reaches the receivers": func(t *testing.T, db *database) {
		arrived := make(chan string, 1)
		topic := db.Topic("changes", func(key string) { arrived <- key })
		none(t, "write", db.announce(topic, "a", engine.Ordered))
		if key := <-arrived; key != "a" {
			t.Errorf("got %q, want a", key)
		}
	},
	"a receiver sees the writes of the job": func(t *testing.T, db *database) {
		n := -1
		topic := db.Topic("changes", func(string) {
			none(t, "read", db.queryRow(context.Background(), `SELECT COUNT(*) FROM items WHERE name = 'a'`).Scan(&n))
		})
		none(t, "write", db.Write(t.Context(), func(tx engine.Tx) error {
			tx.Announce(engine.Announcement{Topic: topic, Key: "a"})
			return insert(tx, "a")
		}))
		if n != 1 {
			t.Errorf("the receiver saw %d rows, want 1", n)
		}
	},
	"nothing of a failed job is announced": func(t *testing.T, db *database) {
		topic := db.Topic("changes", func(key string) { t.Errorf("%q was announced", key) })
		_ = db.Write(t.Context(), func(tx engine.Tx) error {
			for _, delivery := range []engine.Delivery{engine.Strict, engine.Soon, engine.Ordered} {
				tx.Announce(engine.Announcement{Topic: topic, Key: "failed", Delivery: delivery})
			}
			return errRejected
		})
		var got keys
		none(t, "a later job", db.announce(db.Topic("others", got.add), "later", engine.Strict))
		if !slices.Equal(got.all(), []string{"later"}) {
			t.Errorf("the later job announced %q", got.all())
		}
	},
	"all functions of a name receive, and those of other names do not": func(t *testing.T, db *database) {
		var first, second keys
		topic := db.Topic("changes", first.add)
		if again := db.Topic("changes", second.add); again != topic || topic.Name() != "changes" {
			t.Errorf("the same name has two topics: %q and %q", topic.Name(), again.Name())
		}
		db.Topic("others", func(key string) { t.Errorf("%q of another topic was received", key) })
		none(t, "write", db.announce(topic, "a", engine.Strict))
		if !slices.Equal(first.all(), []string{"a"}) || !slices.Equal(second.all(), []string{"a"}) {
			t.Errorf("the functions received %q and %q, want a", first.all(), second.all())
		}
	},
	"any key arrives as it is": func(t *testing.T, db *database) {
		var got keys
		topic := db.Topic("changes", got.add)
		want := []string{"", "\x00", `"'\`, "né 名", "a,b;c\n"}
		for _, key := range want {
			none(t, "write", db.announce(topic, key, engine.Strict))
		}
		if !slices.Equal(got.all(), want) {
			t.Errorf("got %q, want %q", got.all(), want)
		}
	},
	"a receiver that panics harms nobody": func(t *testing.T, db *database) {
		var got keys
		panics := db.Topic("panics", func(string) { panic("a receiver that panics") })
		topic := db.Topic("changes", got.add)
		none(t, "write", db.announce(panics, "a", engine.Strict))
		none(t, "write", db.announce(topic, "b", engine.Strict))
		if !slices.Contains(got.all(), "b") {
			t.Errorf("after a panic the receivers got %q, want b", got.all())
		}
	},
	"a process that is alone remembers, leads and is listed": func(t *testing.T, db *database) {
		if !db.Remembers() || !db.Leads() {
			t.Errorf("remembers: %v, leads: %v, want both", db.Remembers(), db.Leads())
		}
		nodes := db.Nodes()
		if len(nodes) != 1 || !nodes[0].Self || !nodes[0].Leads || nodes[0].ID == "" || nodes[0].Name == "" || nodes[0].Started == 0 {
			t.Errorf("the nodes are %+v", nodes)
		}
	},
}

// announce runs a job that announces a key and writes nothing.
func (db *database) announce(topic *engine.Topic, key string, delivery engine.Delivery) error {
	return db.Write(context.Background(), func(tx engine.Tx) error {
		tx.Announce(engine.Announcement{Topic: topic, Key: key, Delivery: delivery})
		return nil
	})
}

// keys collects what a receiver gets.
type keys struct {
	mu   sync.Mutex
	list []string
}

func (k *keys) add(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = append(k.list, key)
}

func (k *keys) all() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.list)
}
