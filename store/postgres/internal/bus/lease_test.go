package bus_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"kontor/store/engine"
	"kontor/store/postgres/postgrestest"
)

// A node that receives nothing, such as a stopped process, must not use what it remembers when a strict change is answered.
func TestStrict_WaitsForTheLeaseOfASilentNode(t *testing.T) {
	address, proxy := database(t)
	c := &clock{}
	a := start(t, address, options{time: c})
	b := start(t, address, options{time: c, listen: proxy.Through(address)})
	c.beat(a, b)
	proxy.Hold()
	received := a.strict("revoked")
	for range 40 { // 2 s
		if !isOpen(received) && b.Remembers() {
			t.Fatal("answered while a node that has not received the change remembers")
		}
		c.advance(50 * time.Millisecond)
	}
	<-received
	if b.Remembers() || b.has("revoked") {
		t.Fatalf("after the answer the silent node remembers: %v, has received %q", b.Remembers(), b.received())
	}
	before := len(b.received())
	proxy.Release()
	c.flow(t, "the node is back", b.Remembers)
	if len(b.received()) == before { // it has received the key, or an empty one after connecting again
		t.Fatal("the node remembers before it has received the change")
	}
}

// A node that has been silent for a lease is not waited for, and is removed in the end.
func TestStrict_DoesNotWaitForADeadNode(t *testing.T) {
	address, proxy := database(t)
	c := &clock{}
	a := start(t, address, options{time: c})
	b := start(t, address, options{time: c, listen: proxy.Through(address)})
	c.beat(a, b)
	proxy.Hold()
	for range 10 {
		c.beat(a)
	}
	<-a.strict("after the lease")
	nodes := a.Nodes()
	if len(nodes) != 2 || !nodes[0].Live || nodes[1].Live {
		t.Errorf("a silent node is listed as %+v", nodes)
	}
	for range 80 {
		c.beat(a)
	}
	c.flow(t, "the silent node is removed", func() bool { return len(a.Nodes()) == 1 })
	// Its connection is ended by the server, so that it does not keep notifications for it.
	until(t, "the connection of the silent node ends", func() bool {
		r := execute(t, a.writer, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'kontor bus %'`)
		return string(r[0].Rows[0][0]) == "1"
	})
	if b.Remembers() {
		t.Error("a removed node remembers")
	}
	proxy.Release()
	c.flow(t, "the removed node is back", b.Remembers)
}

func TestClose_NobodyWaitsForANodeThatHasStopped(t *testing.T) {
	address := postgrestest.URL(t)
	c := &clock{}
	a, b := start(t, address, options{time: c}), start(t, address, options{time: c})
	first := a.strict("acknowledged")
	c.flow(t, "the answer", func() bool { return !isOpen(first) })
	if err := b.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if b.Remembers() || b.Leads() {
		t.Error("a closed node remembers or leads")
	}
	<-a.strict("a")
	c.beat(a)
	rows := execute(t, a.writer, `SELECT count(*) FROM kontor_acks`)
	if nodes := a.Nodes(); len(nodes) != 1 || string(rows[0].Rows[0][0]) != "0" {
		t.Errorf("after the other node has stopped, there are %+v and acknowledgements: %s", nodes, rows[0].Rows[0][0])
	}
	if err := b.Close(); err != nil {
		t.Errorf("a second close: %v", err)
	}
}

// A node whose receivers are slow acknowledges late. It has no lease meanwhile.
func TestStrict_OfASlowReceiverEndsWithItsLease(t *testing.T) {
	address := postgrestest.URL(t)
	c := &clock{}
	blocked := make(chan struct{})
	a := start(t, address, options{time: c})
	b := start(t, address, options{time: c, receive: func(key string) {
		if key == "slow" {
			<-blocked
		}
	}})
	received := a.strict("slow")
	c.advance(1700 * time.Millisecond)
	if !isOpen(received) || !b.Remembers() {
		t.Fatalf("within the lease: answered %v, remembers %v", !isOpen(received), b.Remembers())
	}
	c.advance(300 * time.Millisecond)
	<-received
	if b.Remembers() {
		t.Error("the slow node remembers after the change was answered")
	}
	close(blocked)
	c.flow(t, "the slow node catches up", b.Remembers)
}

func TestCut_ForgetsBeforeRememberingAgain(t *testing.T) {
	address, proxy := database(t)
	a := start(t, address, options{})
	b := start(t, address, options{listen: proxy.Through(address)})
	for i := range 5 {
		before := len(b.received())
		proxy.Refuse(true)
		proxy.Cut()
		until(t, "the node notices the cut", func() bool { return !b.Remembers() })
		missed := a.strict("missed")
		proxy.Refuse(false)
		until(t, "the node is back", b.Remembers)
		if got := b.received()[before:]; !slices.Contains(got, "") {
			t.Fatalf("cut %d: the node remembers without having forgotten: %q", i, got)
		}
		<-missed
		before = len(b.received())
		<-a.strict("received")
		if b.missed("received", before) {
			t.Fatalf("cut %d: the node misses changes after it is back", i)
		}
	}
}

// Kept functions of a lost connection are not called: the receivers get an empty key instead.
func TestCut_DropsKeptFunctions(t *testing.T) {
	address, proxy := database(t)
	c := &clock{}
	a := start(t, address, options{time: c, listen: proxy.Through(address)})
	before := len(a.received())
	proxy.Hold()
	a.commit("", engine.Announcement{Topic: a.topic, Key: "lost", Delivery: engine.Ordered, Local: func() { t.Error("a function was called after its connection was lost") }})
	if got := a.self().Backlog; got != 1 {
		t.Errorf("%d announcements are in transit, want 1", got)
	}
	proxy.Cut()
	proxy.Release()
	c.flow(t, "the node is back", func() bool { return a.Remembers() && len(a.received()) > before })
	if got := a.received()[before:]; got[0] != "" || a.self().Backlog != 0 {
		t.Errorf("after a cut: received %q, backlog %d", got, a.self().Backlog)
	}
	done := make(chan struct{})
	a.commit("", engine.Announcement{Topic: a.topic, Key: "next", Delivery: engine.Ordered, Local: func() { close(done) }})
	<-done
}

// A node that connects again is not waited for under its former name.
func TestStrict_IsAnsweredWhenTheNodeHasForgotten(t *testing.T) {
	address, proxy := database(t)
	ac, bc := &clock{}, &clock{}
	a := start(t, address, options{time: ac})
	b := start(t, address, options{time: bc, listen: proxy.Through(address)})
	proxy.HoldAnswers()
	received := a.strict("a")
	before := len(b.received())
	proxy.Cut()
	proxy.Release()
	bc.flow(t, "the node is back", func() bool { return b.Remembers() && len(b.received()) > before })
	passed := time.Duration(0)
	until(t, "the answer within the former lease", func() bool {
		if passed += 5 * time.Millisecond; passed < 1700*time.Millisecond {
			ac.advance(5 * time.Millisecond) // the node asks the database for acknowledgements now and then
		}
		return !isOpen(received)
	})
}

func TestPanic_InAReceiverMakesTheNodeForget(t *testing.T) {
	address := postgrestest.URL(t)
	a := start(t, address, options{})
	b := start(t, address, options{receive: func(key string) {
		if key == "panic" {
			panic("a receiver that panics")
		}
	}})
	before := len(b.received())
	<-a.strict("panic")
	until(t, "the node is back", func() bool {
		got := b.received()[before:]
		return b.Remembers() && len(got) >= 2 && got[0] == "panic" && got[1] == ""
	})
}

func TestDelay_OfTheNetworkIsEndured(t *testing.T) {
	address, proxy := database(t)
	proxy.Delay(100 * time.Millisecond)
	a := start(t, address, options{listen: proxy.Through(address)})
	b := start(t, address, options{listen: proxy.Through(address)})
	for range 5 {
		<-a.strict("a")
		until(t, "both nodes to remember with a round trip of 200 ms", func() bool { return a.Remembers() && b.Remembers() })
	}
}

func TestMany_NodesAcknowledge(t *testing.T) {
	address := postgrestest.URL(t)
	nodes := make([]*node, 50)
	for i := range nodes {
		nodes[i] = start(t, address, options{})
	}
	for range 5 {
		before := make([]int, len(nodes))
		for i, n := range nodes {
			before[i] = len(n.received())
		}
		<-nodes[0].strict("a")
		for i, n := range nodes[1:] {
			if n.missed("a", before[i+1]) {
				t.Fatalf("node %d remembers without having received the key", i+1)
			}
		}
	}
	until(t, "all nodes are listed", func() bool { return len(nodes[0].Nodes()) == len(nodes) })
	until(t, "one node leads", func() bool { return len(leaders(nodes...)) == 1 })
}

// After a lost connection the empty key comes before all later announcements, so that a receiver that passes changes on in
// their order notices what it has missed.
func TestCut_IsReportedBeforeLaterAnnouncements(t *testing.T) {
	address, proxy := database(t)
	a := start(t, address, options{})
	b := start(t, address, options{listen: proxy.Through(address)})
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
				a.commit("", engine.Announcement{Topic: a.topic, Key: strconv.Itoa(n), Delivery: engine.Soon})
			}
		}
	}()
	connected := func() (times int) {
		for _, key := range b.received() {
			if key == "" {
				times++
			}
		}
		return times
	}
	for range 20 {
		before := len(b.received())
		until(t, "announcements", func() bool { return len(b.received()) > before+20 })
		times := connected()
		proxy.Cut()
		until(t, "the node is back", func() bool { return connected() > times && b.Remembers() })
	}
	close(stop)
	<-stopped
	last, missed := -1, true
	for i, key := range b.received() {
		if key == "" {
			missed = true
			continue
		}
		n, err := strconv.Atoi(key)
		if err != nil || n != last+1 && !missed {
			t.Fatalf("key %d is %q after %d, and nothing says that some were missed", i, key, last)
		}
		last, missed = n, false
	}
}
