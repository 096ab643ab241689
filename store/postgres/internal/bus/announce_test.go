package bus_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"kontor/store/engine"
	"kontor/store/postgres/internal/bus"
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
		before := len(to.received())
		<-from.strict(key)
		if to.missed(key, before) {
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
	c := &clock{} // stands still: no node connects again
	nodes := []*node{start(t, address, options{time: c}), start(t, address, options{time: c}), start(t, address, options{time: c})}
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
	c := &clock{}
	a, b := start(t, address, options{time: c}), start(t, address, options{time: c})
	g := a.Prepare([]engine.Announcement{{Topic: a.topic, Key: "undone", Delivery: engine.Ordered, Local: func() { t.Error("the function was called") }}})
	a.Undone(g)
	a.Undone(nil)
	a.strict("later")
	until(t, "the later group arrives at both", func() bool { return b.has("later") && a.self().Backlog == 0 })
	if b.has("undone") {
		t.Errorf("after an undone group: received %q", b.received())
	}
}

func TestKeys_ArriveAsTheyAre(t *testing.T) {
	address := postgrestest.URL(t)
	c := &clock{}
	a, b := start(t, address, options{time: c}), start(t, address, options{time: c})
	arrived := func(before, n int) []string {
		until(t, "the keys arrive", func() bool { return len(b.received()) >= before+n })
		return b.received()[before:]
	}
	before := len(b.received())
	keys := []string{"", "\x00", `"'\{},`, "né\n\u2028", "<&>", strings.Repeat("x", 7000)}
	for _, key := range keys {
		a.strict(key)
	}
	if got := arrived(before, len(keys)); !slices.Equal(got, keys) {
		t.Errorf("got %q, want %q", got, keys)
	}
	before = len(b.received())
	a.strict("\xff")
	a.strict(strings.Repeat("y", 9000))
	if got := arrived(before, 2); !slices.Equal(got, []string{"", ""}) {
		t.Errorf("keys that cannot be sent arrived as %q, want empty ones", got)
	}
}

func TestLongLists_AreShortenedByTopic(t *testing.T) {
	address := postgrestest.URL(t)
	c := &clock{}
	a, b := start(t, address, options{time: c}), start(t, address, options{time: c})
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
		var locals atomic.Int64
		for i := range n {
			key := fmt.Sprintf("%036d", i)
			want = append(want, key)
			list = append(list, engine.Announcement{Topic: a.topic, Key: key, Delivery: engine.Ordered, Local: func() { locals.Add(1) }})
		}
		list = append(list, engine.Announcement{Topic: few, Key: fmt.Sprint("few ", n)})
		a.commit("", list...)
		until(t, "the local functions are called", func() bool { return locals.Load() == int64(n) })
		until(t, "the last key arrives", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Contains(got, fmt.Sprint("few ", n))
		})
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
	c := &clock{}
	a := start(t, address+"&search_path=one", options{time: c})
	b := start(t, address+"&search_path=two", options{time: c})
	if !a.Leads() || !b.Leads() || len(a.Nodes()) != 1 || len(b.Nodes()) != 1 || a.Channel() == b.Channel() {
		t.Errorf("two schemas: lead %v and %v, nodes %v and %v, channels %s and %s", a.Leads(), b.Leads(), a.Nodes(), b.Nodes(), a.Channel(), b.Channel())
	}
	<-a.strict("a")
	<-b.strict("b")
	if b.has("a") || a.has("b") {
		t.Error("an announcement has reached another schema")
	}
}

// PostgreSQL may deliver a notification before its answer to LISTEN. The empty key, which says that announcements were missed,
// must come first even then.
func TestListen_IsFollowedByTheEmptyKey(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		serveListen(pgproto3.NewBackend(conn, conn))
	}()
	t.Cleanup(func() { listener.Close(); <-served })
	c := &clock{} // no heartbeat after the first
	n := listen(t, "postgres://kontor@"+listener.Addr().String()+"/kontor?sslmode=disable", options{time: c})
	if got := n.received(); !slices.Equal(got, []string{"", "early"}) {
		t.Errorf("got %q, want the empty key first, once", got)
	}
}

// serveListen plays a server that sends a notification before its answer to LISTEN.
func serveListen(client *pgproto3.Backend) {
	if _, err := client.ReceiveStartupMessage(); err != nil {
		return
	}
	client.Send(&pgproto3.AuthenticationOk{})
	client.Send(&pgproto3.BackendKeyData{ProcessID: 7, SecretKey: []byte{1, 2, 3, 4}})
	ready := &pgproto3.ReadyForQuery{TxStatus: 'I'}
	client.Send(ready)
	statement, node := "", ""
	for client.Flush() == nil {
		message, err := client.Receive()
		if err != nil {
			return
		}
		switch m := message.(type) {
		case *pgproto3.Query:
			if channel, listens := strings.CutPrefix(m.String, "LISTEN "); listens {
				client.Send(&pgproto3.NotificationResponse{PID: 8, Channel: channel, Payload: `{"v":1,"n":"A","t":"B","l":true,"p":[["changes","early"]]}`})
			} else {
				client.Send(texts("7", "1", "f", "t", "1000000"))
			}
			client.Send(ready)
		case *pgproto3.Bind:
			if statement = m.PreparedStatement; statement == "beat" {
				node = string(m.Parameters[0])
			}
		case *pgproto3.Sync:
			if statement == "beat" {
				client.Send(texts("1000000", "7", "t", "t", "0", node, "1", node, "X", "name", "1", "1000", "1", "7", ""))
			}
			statement = ""
			client.Send(ready)
		}
	}
}

// texts returns a row.
func texts(columns ...string) *pgproto3.DataRow {
	r := &pgproto3.DataRow{}
	for _, column := range columns {
		r.Values = append(r.Values, []byte(column))
	}
	return r
}

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
	before := len(b.received())
	<-a.strict("after the crash")
	if b.missed("after the crash", before) {
		t.Error("the other node remembers without having received the change")
	}
	until(t, "somebody leads", func() bool { return len(leaders(a, b)) == 1 })
	<-a.strict("later")
}

// server is a server's clock beside the monotonic one.
type server struct {
	mono   *clock
	offset time.Duration
}

var epoch = time.Date(2026, time.January, 31, 8, 0, 0, 0, time.UTC)

func (s server) now() time.Time { return epoch.Add(s.mono.Now() + s.offset) }

// ask passes a sample whose answer took two times: to the server and back.
func (s server) ask(c *bus.Clock, there, back time.Duration) {
	sent := s.mono.Now()
	s.mono.advance(there)
	shown := s.now()
	s.mono.advance(back)
	c.Sample(sent, s.mono.Now(), shown)
}

func TestClock_IsWrongByHalfARoundTripAtMost(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(1, seed))
		s := server{mono: &clock{}, offset: time.Duration(random.Int64N(int64(time.Hour)))}
		c := bus.NewClock(s.mono)
		best := time.Hour
		for range 100 {
			there, back := time.Duration(random.Int64N(int64(200*time.Millisecond))), time.Duration(random.Int64N(int64(200*time.Millisecond)))
			best = min(best, there+back)
			s.ask(c, there, back)
			s.mono.advance(250 * time.Millisecond)
		}
		// While it runs at half speed it may be wrong by more.
		s.mono.advance(time.Second)
		if wrong := c.Now().Sub(s.now()).Abs(); wrong > best/2+time.Minute/5000 {
			t.Errorf("seed %d: the clock is wrong by %v, with a shortest round trip of %v", seed, wrong, best)
		}
	}
}

func TestClock_DoesNotGoBackForShortSteps(t *testing.T) {
	s := server{mono: &clock{}, offset: time.Minute}
	c := bus.NewClock(s.mono)
	s.ask(c, time.Millisecond, time.Millisecond)
	for _, step := range []time.Duration{-3 * time.Second, 30 * time.Second, -time.Second, 0} {
		s.offset += step
		before := c.Now()
		s.ask(c, time.Millisecond, time.Millisecond)
		for range 25_000 {
			s.mono.advance(time.Millisecond)
			now := c.Now()
			if now.Before(before) {
				t.Fatalf("after a step of %v the clock went back by %v", step, before.Sub(now))
			}
			if !now.After(before) {
				t.Fatalf("after a step of %v the clock stands still", step)
			}
			before = now
		}
		if wrong := c.Now().Sub(s.now()).Abs(); wrong > 10*time.Millisecond {
			t.Errorf("after a step of %v the clock is wrong by %v", step, wrong)
		}
	}
}

// After a longer step back the clock is right at once, and runs as before. Otherwise nodes would disagree for twice the step.
func TestClock_FollowsLongStepsAtOnce(t *testing.T) {
	s := server{mono: &clock{}, offset: time.Minute}
	c := bus.NewClock(s.mono)
	var reported []time.Duration
	c.OnStep(func(by time.Duration) { reported = append(reported, by.Round(time.Second)) })
	s.ask(c, time.Millisecond, time.Millisecond)
	steps := []time.Duration{-20 * time.Minute, time.Hour, -4 * time.Second, 5 * time.Second}
	for _, step := range steps {
		s.mono.advance(time.Second)
		c.Now()
		s.offset += step
		s.ask(c, time.Millisecond, time.Millisecond)
		for range 3 {
			before := c.Now()
			if wrong := before.Sub(s.now()).Abs(); wrong > 10*time.Millisecond {
				t.Errorf("after a step of %v the clock is wrong by %v", step, wrong)
			}
			s.mono.advance(time.Second)
			if took := c.Now().Sub(before); took != time.Second {
				t.Errorf("after a step of %v a second takes %v", step, took)
			}
		}
	}
	if !slices.Equal(reported, steps) {
		t.Errorf("reported %v", reported)
	}
}

func TestClock_HasOneOrderForAllGoroutines(t *testing.T) {
	s := server{mono: &clock{}}
	c := bus.NewClock(s.mono)
	var mu sync.Mutex
	var latest time.Time
	var reading sync.WaitGroup
	for range 4 {
		reading.Go(func() {
			for range 2000 {
				mu.Lock()
				floor := latest
				mu.Unlock()
				now := c.Now()
				if now.Before(floor) {
					t.Errorf("a goroutine read %v after another had read %v", now, floor)
				}
				mu.Lock()
				if now.After(latest) {
					latest = now
				}
				mu.Unlock()
			}
		})
	}
	for range 1000 {
		s.offset -= time.Millisecond
		s.ask(c, time.Microsecond, time.Microsecond)
	}
	reading.Wait()
}

// The clock of a node is wrong by at most half a round trip, which is shorter than the whole test.
func TestClock_FollowsTheServer(t *testing.T) {
	address := postgrestest.URL(t)
	began := time.Now()
	a, b := start(t, address, options{}), start(t, address, options{})
	for range 5 {
		before := a.Clock().Now()
		r := execute(t, a.writer, `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`)
		after := b.Clock().Now()
		shown, err := time.ParseDuration(string(r[0].Rows[0][0]) + "us")
		if err != nil {
			t.Fatal(err)
		}
		slack := time.Since(began)
		server := time.Unix(0, int64(shown))
		if server.Before(before.Add(-slack)) || server.After(after.Add(slack)) {
			t.Errorf("the server's clock shows %v, those of the nodes %v and %v", server, before, after)
		}
	}
}

func TestPool_InTransactionModeIsRefused(t *testing.T) {
	address := postgrestest.NewPool(t, postgrestest.URL(t), true)
	_, err := open(t, address, options{})
	if err == nil || !strings.Contains(err.Error(), "transaction mode") || !strings.Contains(err.Error(), "use the address of PostgreSQL itself") {
		t.Errorf("got %v, want a sentence that says what to do", err)
	}
}

func TestPool_InSessionModeIsAccepted(t *testing.T) {
	direct := postgrestest.URL(t)
	a := start(t, direct, options{listen: postgrestest.NewPool(t, direct, false)})
	b := start(t, direct, options{})
	before := len(a.received())
	<-b.strict("through the pool")
	if a.missed("through the pool", before) {
		t.Error("the key has not arrived through the pool")
	}
}
