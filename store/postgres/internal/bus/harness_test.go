package bus_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"kontor/store/engine"
	"kontor/store/postgres/internal/bus"
	"kontor/store/postgres/postgrestest"
	"kontor/store/testenv"
)

// node is a bus with what stands around it in an engine: topics, and a connection that commits.
type node struct {
	*bus.Bus
	t      testing.TB
	topics *engine.Topics
	topic  *engine.Topic
	writer *pgconn.PgConn

	mu   sync.Mutex
	keys []string // that the topic has received
}

// options are those of a node.
type options struct {
	listen  string // address of the listening connection; "" is that of the database
	name    string
	time    bus.Time
	receive func(key string) // called with each key, after it was collected
	log     *slog.Logger
}

// start opens a node on a database.
func start(t testing.TB, address string, o options) *node {
	t.Helper()
	n, err := open(t, address, o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return n
}

func open(t testing.TB, address string, o options) (*node, error) {
	t.Helper()
	if o.listen == "" {
		o.listen = address
	}
	n, err := openBus(t, o)
	if err == nil {
		n.writer = connect(t, address)
	}
	return n, err
}

// listen opens a node that does not write.
func listen(t testing.TB, address string, o options) *node {
	t.Helper()
	o.listen = address
	n, err := openBus(t, o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return n
}

func openBus(t testing.TB, o options) (*node, error) {
	t.Helper()
	n := &node{t: t, topics: &engine.Topics{}}
	n.topic = n.topics.Topic("changes", func(key string) {
		n.mu.Lock()
		n.keys = append(n.keys, key)
		n.mu.Unlock()
		if o.receive != nil {
			o.receive(key)
		}
	})
	if o.log == nil {
		o.log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	var err error
	n.Bus, err = bus.Open(context.Background(), bus.Config{
		Connect: func(ctx context.Context) (*pgconn.PgConn, error) { return pgconn.Connect(ctx, o.listen) },
		Topics:  n.topics, Node: engine.Node{ID: rand.Text(), Name: o.name, Version: "1.2.3"}, Time: o.time, Log: o.log,
	})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { n.Close() })
	return n, nil
}

// connect returns a connection that ends with the test.
func connect(t testing.TB, address string) *pgconn.PgConn {
	t.Helper()
	conn, err := pgconn.Connect(context.Background(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// execute runs statements.
func execute(t testing.TB, conn *pgconn.PgConn, sql string) []*pgconn.Result {
	t.Helper()
	results, err := conn.Exec(context.Background(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return results
}

// commit commits a transaction that runs a statement and announces, as an engine does. The transactions of all nodes run one
// after another.
func (n *node) commit(sql string, list ...engine.Announcement) (received <-chan struct{}) {
	n.t.Helper()
	g := n.Prepare(list)
	execute(n.t, n.writer, `BEGIN; SELECT pg_advisory_xact_lock(1); `+sql)
	if g != nil {
		payloads := []byte("{")
		for i, p := range g.Payloads() {
			if i > 0 {
				payloads = append(payloads, ',')
			}
			payloads = append(payloads, quote(p)...)
		}
		args := [][]byte{[]byte(n.Channel()), append(payloads, '}')}
		if r := n.writer.ExecParams(context.Background(), `SELECT pg_notify($1, payload) FROM unnest($2::text[]) payload`, args, nil, nil, nil).Read(); r.Err != nil {
			n.t.Fatalf("notify: %v", r.Err)
		}
	}
	execute(n.t, n.writer, `COMMIT`)
	return n.Committed(g)
}

// quote quotes an element of an array.
func quote(text string) string {
	quoted := []byte{'"'}
	for i := range len(text) {
		if c := text[i]; c == '"' || c == '\\' {
			quoted = append(quoted, '\\')
		}
		quoted = append(quoted, text[i])
	}
	return string(append(quoted, '"'))
}

// strict announces a key strictly.
func (n *node) strict(key string) <-chan struct{} {
	n.t.Helper()
	return n.commit("", strictly(n, key))
}

// strictly returns a strict announcement.
func strictly(n *node, key string) engine.Announcement {
	return engine.Announcement{Topic: n.topic, Key: key, Delivery: engine.Strict}
}

// received returns the keys that the topic has received.
func (n *node) received() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.keys)
}

func (n *node) has(key string) bool { return slices.Contains(n.received(), key) }

// missed reports whether the node uses what it remembers, although it has received neither a key nor an empty one since it had received
// some. On a busy machine a node may lose its lease, and learns of a change later.
func (n *node) missed(key string, before int) bool {
	return n.Remembers() && !slices.ContainsFunc(n.received()[before:], func(got string) bool { return got == key || got == "" })
}

// leaders returns which of the nodes lead.
func leaders(nodes ...*node) (leading []int) {
	for i, n := range nodes {
		if n.Leads() {
			leading = append(leading, i)
		}
	}
	return leading
}

// until waits for a condition.
func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	testenv.Wait(t, what, condition)
}

// isOpen reports whether a strict change still waits.
func isOpen(received <-chan struct{}) bool {
	select {
	case <-received:
		return false
	default:
		return received != nil
	}
}

// clock is a monotonic clock that a test moves.
type clock struct {
	mu     sync.Mutex
	now    time.Duration
	timers []*timer
}

type timer struct {
	due time.Duration
	f   func()
}

func (c *clock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	added := &timer{due: c.now + d, f: f}
	if d <= 0 {
		go f()
		return func() bool { return false }
	}
	c.timers = append(c.timers, added)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		i := slices.Index(c.timers, added)
		if i >= 0 {
			c.timers = slices.Delete(c.timers, i, i+1)
		}
		return i >= 0
	}
}

// advance moves the clock, and starts the functions that are due.
func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	c.now += d
	var due []*timer
	c.timers = slices.DeleteFunc(c.timers, func(t *timer) bool {
		if t.due > c.now {
			return false
		}
		due = append(due, t)
		return true
	})
	c.mu.Unlock()
	slices.SortFunc(due, func(a, b *timer) int { return int(a.due - b.due) })
	for _, t := range due {
		go t.f()
	}
}

// beat moves the clock by the interval of heartbeats, and waits until the nodes have had an answer.
func (c *clock) beat(nodes ...*node) {
	c.advance(250 * time.Millisecond)
	now := c.Now()
	for _, n := range nodes {
		c.flow(n.t, "a heartbeat", func() bool { return n.self().Lag <= c.Now()-now })
	}
}

// mostAtOnce is how far [clock.flow] moves the clock at once. On a busy machine a goroutine may not run for seconds; that must not
// look like a node that has been silent for as long.
const mostAtOnce = 20 * time.Millisecond

// flow waits for a condition while the clock moves as real time does, or slower.
func (c *clock) flow(t testing.TB, what string, condition func() bool) {
	t.Helper()
	last := time.Now()
	until(t, what, func() bool {
		now := time.Now()
		c.advance(min(now.Sub(last), mostAtOnce))
		last = now
		return condition()
	})
}

// self returns the node's own entry.
func (n *node) self() engine.Node {
	for _, found := range n.Nodes() {
		if found.Self {
			return found
		}
	}
	n.t.Fatalf("the node does not list itself: %+v", n.Nodes())
	return engine.Node{}
}

// database returns the address of an empty database, and a proxy in front of its server.
func database(t testing.TB) (address string, proxy *postgrestest.Proxy) {
	t.Helper()
	address = postgrestest.URL(t)
	c, err := pgconn.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	return address, postgrestest.NewProxy(t, fmt.Sprintf("%s:%d", c.Host, c.Port))
}
