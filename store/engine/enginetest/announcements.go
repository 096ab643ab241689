package enginetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"kontor/store/engine"
)

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
