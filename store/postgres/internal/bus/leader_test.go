package bus_test

import (
	"testing"
	"time"

	"kontor/store/postgres/postgrestest"
)

func TestLeader_IsOneAndIsFollowed(t *testing.T) {
	address := postgrestest.URL(t)
	c := &clock{}
	a, b := start(t, address, options{time: c, name: "first"}), start(t, address, options{time: c, name: "second"})
	if got := leaders(a, b); len(got) != 1 || got[0] != 0 {
		t.Fatalf("the leaders are %v, want the first node", got)
	}
	c.beat(a, b)
	for i, n := range []*node{a, b} {
		nodes := n.Nodes()
		if len(nodes) != 2 || nodes[0].Name != "first" || nodes[1].Name != "second" || !nodes[0].Leads || nodes[1].Leads ||
			!nodes[0].Live || !nodes[1].Live || nodes[i].Version != "1.2.3" || !nodes[i].Self || nodes[1-i].Self || nodes[0].Started == 0 {
			t.Errorf("node %d lists %+v", i, nodes)
		}
	}
	a.Close()
	c.beat(b)
	until(t, "the other node leads", b.Leads)
}

// A leader that is cut off stops leading before another one begins, and does not lead when it is back.
func TestLeader_IsReplacedWhenItIsSilent(t *testing.T) {
	address, proxy := database(t)
	c := &clock{}
	a := start(t, address, options{time: c, listen: proxy.Through(address)})
	b := start(t, address, options{time: c})
	c.beat(a, b)
	proxy.Hold()
	begun := c.Now()
	for !b.Leads() {
		c.beat(b)
		if got := leaders(a, b); len(got) > 1 {
			t.Fatal("two nodes lead")
		}
		if c.Now()-begun > 4*time.Second {
			t.Fatal("nobody has taken over for 4 s")
		}
	}
	proxy.Release()
	c.flow(t, "the former leader is back", func() bool {
		if len(leaders(a, b)) > 1 {
			t.Fatal("two nodes lead")
		}
		return a.Remembers()
	})
	c.beat(a, b)
	if got := leaders(a, b); len(got) != 1 || got[0] != 1 {
		t.Errorf("the leaders are %v, want the node that has taken over", got)
	}
}

// When the server starts again its tables for nodes are empty, while nodes may not have noticed. So for the time of a lease
// no node trusts them.
func TestRestart_OfTheServerIsSurvived(t *testing.T) {
	server := postgrestest.Server(t, postgrestest.Options{})
	address := server.URL("postgres")
	a, b := start(t, address, options{}), start(t, address, options{})
	server.Crash(t)
	until(t, "the nodes notice", func() bool { return !a.Remembers() && !b.Remembers() && len(leaders(a, b)) == 0 })
	server.StartAgain(t)
	until(t, "the nodes are back", func() bool { return a.Remembers() && b.Remembers() })
	a.writer, b.writer = connect(t, address), connect(t, address)
	<-a.strict("after the crash")
	if b.Remembers() && !b.has("after the crash") {
		t.Error("the other node remembers without having received the change")
	}
	until(t, "somebody leads", func() bool { return len(leaders(a, b)) == 1 })
	<-a.strict("later")
}
