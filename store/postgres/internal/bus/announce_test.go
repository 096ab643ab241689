package bus_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"kontor/store/engine"
	"kontor/store/postgres/postgrestest"
)

func TestStrict_ReachesOtherNodesBeforeTheAnswer(t *testing.T) {
	address := postgrestest.URL(t)
	a, b := start(t, address, options{}), start(t, address, options{})
	for i := range 300 {
		key := fmt.Sprint(i)
		from, to := a, b
		if i%2 == 1 {
			from, to = b, a
		}
		<-from.strict(key)
		if !to.has(key) {
			t.Fatalf("round %d: answered before the other node has received the key", i)
		}
		if from.has(key) {
			t.Fatalf("round %d: the receivers of the node itself were called: that is done by the engine", i)
		}
	}
}

func TestStrict_AloneIsAnsweredAtOnce(t *testing.T) {
	c := &clock{}
	n := start(t, postgrestest.URL(t), options{time: c})
	<-n.strict("a")
}

func TestSoon_ArrivesAndNobodyWaits(t *testing.T) {
	address := postgrestest.URL(t)
	a, b := start(t, address, options{}), start(t, address, options{})
	if a.commit("", engine.Announcement{Topic: a.topic, Key: "soon", Delivery: engine.Soon}) != nil {
		t.Error("a change that is announced soon has a channel to wait for")
	}
	until(t, "the key arrives", func() bool { return b.has("soon") })
	if got := a.commit(""); got != nil {
		t.Error("a group without announcements has a channel to wait for")
	}
}

func TestOrdered_HasOneOrderOnAllNodes(t *testing.T) {
	address := postgrestest.URL(t)
	const rounds = 100
	nodes := []*node{start(t, address, options{}), start(t, address, options{}), start(t, address, options{})}
	var mu sync.Mutex
	locals := make(map[string]bool)
	var writing sync.WaitGroup
	for i, n := range nodes {
		writing.Go(func() {
			for round := range rounds {
				key := fmt.Sprint(i, "-", round)
				n.commit("", engine.Announcement{Topic: n.topic, Key: key, Delivery: engine.Ordered, Local: func() {
					mu.Lock()
					locals[key] = true
					mu.Unlock()
					n.mu.Lock()
					n.keys = append(n.keys, key)
					n.mu.Unlock()
				}})
			}
		})
	}
	writing.Wait()
	for _, n := range nodes {
		until(t, "all keys arrive", func() bool { return len(n.received()) >= 1+rounds*len(nodes) })
		if got := n.self().Backlog; got != 0 {
			t.Errorf("%d announcements are in transit after all have arrived", got)
		}
	}
	first := nodes[0].received()
	for i, n := range nodes[1:] {
		if got := n.received(); !slices.Equal(got, first) {
			t.Errorf("node %d has another order than node 0:\n%v\n%v", i+1, got, first)
		}
	}
	if len(locals) != rounds*len(nodes) {
		t.Errorf("%d local functions were called, want %d", len(locals), rounds*len(nodes))
	}
}

func TestUndone_AnnouncesNothing(t *testing.T) {
	address := postgrestest.URL(t)
	a, b := start(t, address, options{}), start(t, address, options{})
	g := a.Prepare([]engine.Announcement{{Topic: a.topic, Key: "undone", Delivery: engine.Ordered, Local: func() { t.Error("the function was called") }}})
	a.Undone(g)
	a.Undone(nil)
	<-a.strict("later")
	if a.self().Backlog != 0 || b.has("undone") {
		t.Errorf("after an undone group: backlog %d, received %q", a.self().Backlog, b.received())
	}
}

func TestKeys_ArriveAsTheyAre(t *testing.T) {
	address := postgrestest.URL(t)
	a, b := start(t, address, options{}), start(t, address, options{})
	before := len(b.received())
	keys := []string{"", "\x00", `"'\{},`, "né\n\u2028", "<&>", strings.Repeat("x", 7000)}
	for _, key := range keys {
		<-a.strict(key)
	}
	if got := b.received()[before:]; !slices.Equal(got, keys) {
		t.Errorf("got %q, want %q", got, keys)
	}
	before = len(b.received())
	<-a.strict("\xff")
	<-a.strict(strings.Repeat("y", 9000))
	if got := b.received()[before:]; !slices.Equal(got, []string{"", ""}) {
		t.Errorf("keys that cannot be sent arrived as %q, want empty ones", got)
	}
}

func TestLongLists_AreShortenedByTopic(t *testing.T) {
	address := postgrestest.URL(t)
	a, b := start(t, address, options{}), start(t, address, options{})
	few := a.topics.Topic("few", func(string) {})
	var mu sync.Mutex
	var got []string
	b.topics.Topic("few", func(key string) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, key)
	})
	announce := func(n int) (want, keys []string) {
		before := len(b.received())
		var list []engine.Announcement
		locals := 0
		for i := range n {
			key := fmt.Sprintf("%036d", i)
			want = append(want, key)
			list = append(list, engine.Announcement{Topic: a.topic, Key: key, Delivery: engine.Ordered, Local: func() { locals++ }})
		}
		list = append(list, engine.Announcement{Topic: few, Key: fmt.Sprint("few ", n)})
		<-a.commit("", list...)
		until(t, "the own notification arrives", func() bool { return a.self().Backlog == 0 })
		if locals != n {
			t.Errorf("%d local functions of %d were called", locals, n)
		}
		return want, b.received()[before:]
	}
	if want, keys := announce(1000); !slices.Equal(keys, want) {
		t.Errorf("1,000 keys arrived as %d: %.200q", len(keys), keys)
	}
	if _, keys := announce(2000); !slices.Equal(keys, []string{""}) {
		t.Errorf("a list that is too long arrived as %d keys, want one empty key", len(keys))
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"few 1000", "few 2000"}; !slices.Equal(got, want) {
		t.Errorf("the other topic received %q, want %q", got, want)
	}
}

func TestSchemas_DoNotDisturbEachOther(t *testing.T) {
	address := postgrestest.URL(t)
	execute(t, connect(t, address), `CREATE SCHEMA one; CREATE SCHEMA two`)
	a := start(t, address+"&search_path=one", options{})
	b := start(t, address+"&search_path=two", options{})
	if !a.Leads() || !b.Leads() || len(a.Nodes()) != 1 || len(b.Nodes()) != 1 || a.Channel() == b.Channel() {
		t.Errorf("two schemas: lead %v and %v, nodes %v and %v, channels %s and %s", a.Leads(), b.Leads(), a.Nodes(), b.Nodes(), a.Channel(), b.Channel())
	}
	<-a.strict("a")
	<-b.strict("b")
	if b.has("a") || a.has("b") {
		t.Error("an announcement has reached another schema")
	}
}
