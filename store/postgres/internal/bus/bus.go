// Package bus connects the processes, or nodes, that share a PostgreSQL database: it carries their announcements, says
// whether a node may use what it remembers, chooses the node that leads, and follows the server's clock.
//
// # Announcements
//
// A group of jobs sends its announcements by pg_notify in its own transaction. PostgreSQL delivers the notifications of all
// nodes to all nodes in the order of the commits. Each node listens on a connection of its own, on which it does nothing
// else that takes long.
//
// # Leases
//
// A node sends a heartbeat every 250 ms on that same connection. A notification that was sent before the server processed
// the heartbeat arrives before the heartbeat's answer. So an answer proves that the node has received all earlier
// announcements. From the moment at which it sent the heartbeat, the node may use what it remembers for 1.75 s by its own
// monotonic clock. A strict change waits until each node has acknowledged it, and for 2 s at most: by then a silent node
// has noticed that its lease has ended. The difference allows for clocks of different speed, and for the time between the
// check of the lease and the use of what is remembered.
//
// Heartbeats also show the nodes to each other. A node whose heartbeats another one has not seen for 2 s, by the monotonic
// clock of the observer, is not waited for. The time of the server plays no part in it, so its clock may jump.
//
// # Limits
//
// Every user of the database can send notifications, and listen. A forged notification makes nodes forget, and costs the
// work of reading again. A forged acknowledgement needs the right to write to the tables of this package. Leases do not
// protect from a monotonic clock that stops together with the process, as that of a suspended virtual machine does.
package bus

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"kontor/store/clock"
	"kontor/store/engine"
)

const (
	// lease is how long other nodes wait for a silent one.
	lease = 2 * time.Second
	// usable is how long a node uses what it remembers after it has sent a heartbeat.
	usable = lease - 250*time.Millisecond
	// beatInterval is the time between two heartbeats.
	beatInterval = 250 * time.Millisecond
	// answerLimit is how long the server may take for an answer before the node connects again.
	answerLimit = 5 * time.Second
)

// Config is what a bus needs.
type Config struct {
	// Connect returns a new connection of which the bus takes over everything. Its search path begins with the schema of
	// the database.
	Connect func(ctx context.Context) (*pgconn.PgConn, error)
	// Topics receive the announcements.
	Topics *engine.Topics
	// Node describes this process.
	Node engine.Node
	Log  *slog.Logger
	// Lost is called whenever the connection is lost: others to the same server may be dead, too. nil does nothing.
	Lost func()
	// Time is the monotonic clock; nil is the machine's.
	Time Time
}

// Bus is a node's connection to the others. Its methods may be called from any goroutine.
type Bus struct {
	config Config
	log    *slog.Logger
	time   Time
	node   string // id of this process, the publisher of its announcements
	clock  *Clock
	steps  atomic.Uint64 // of the server's clock

	rememberUntil atomic.Int64 // monotonic; Remembers
	leadUntil     atomic.Int64 // monotonic; Leads

	mu      sync.Mutex
	session *session // nil while there is no connection
	closing bool
	channel string
	kept    map[string]*Group // whose notification has not arrived yet, by tag
	waiters []*waiter         // strict changes that wait, in the order of their commits
	members members

	stop  context.CancelFunc
	ended chan struct{}
}

// Open connects and registers the node, and creates the tables of the bus if they are missing. When it returns, the node
// remembers. Its errors are one sentence that says what to do.
func Open(ctx context.Context, c Config) (*Bus, error) {
	b := &Bus{config: c, log: c.Log, time: c.Time, node: c.Node.ID, kept: make(map[string]*Group), ended: make(chan struct{})}
	if b.time == nil {
		b.time = machineTime{start: time.Now()}
	}
	if b.log == nil {
		b.log = slog.Default()
	}
	b.clock = newClock(b.time)
	b.clock.stepped = func(by time.Duration) {
		b.steps.Add(1)
		b.log.Warn("the clock of the database server was set; this node follows it at once", "by", by.Round(time.Millisecond).String())
	}
	first, err := b.connect(ctx)
	if err != nil {
		return nil, err
	}
	background, cancel := context.WithCancel(context.Background())
	b.stop = cancel
	go b.run(background, first)
	return b, nil
}

// Remembers reports whether this node has received all announcements, so that what it remembers may be used.
func (b *Bus) Remembers() bool { return int64(b.time.Now()) < b.rememberUntil.Load() }

// Leads reports whether this node runs the jobs of the cluster.
func (b *Bus) Leads() bool { return int64(b.time.Now()) < b.leadUntil.Load() }

// Clock returns the clock of the server.
func (b *Bus) Clock() clock.Clock { return b.clock }

// ClockSteps returns how often the server's clock was set by more than a few seconds.
func (b *Bus) ClockSteps() uint64 { return b.steps.Load() }

// Channel returns the channel of the notifications.
func (b *Bus) Channel() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.channel
}

// run connects again whenever the connection is lost, until Close.
func (b *Bus) run(ctx context.Context, s *session) {
	defer close(b.ended)
	for s != nil {
		err := s.wait(ctx)
		if b.isClosing() {
			return
		}
		if b.config.Lost != nil {
			b.config.Lost()
		}
		b.log.Warn("lost the connection for announcements; the database is asked instead of the memory until it is back", "err", err)
		s = b.reconnect(ctx)
		if s != nil {
			b.log.Info("announcements are received again")
		}
	}
}

// Reconnect replaces the connection, because another server is the primary now.
func (b *Bus) Reconnect() {
	b.mu.Lock()
	s := b.session
	b.mu.Unlock()
	if s != nil {
		s.fail(errMoved)
	}
}

var errMoved = errors.New("another server is the primary of the database")

func (b *Bus) isClosing() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closing
}

const (
	firstPause = 50 * time.Millisecond
	maxPause   = 2 * time.Second
	// connectLimit bounds one attempt to connect.
	connectLimit = 10 * time.Second
)

// reconnect returns a session, or nil when the context has ended.
func (b *Bus) reconnect(ctx context.Context) *session {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		if !b.pause(ctx, pause) {
			return nil
		}
		attempt, cancel := context.WithTimeout(ctx, connectLimit)
		s, err := b.connect(attempt)
		cancel()
		if err == nil {
			return s
		}
		b.log.Debug("could not connect for announcements", "err", err)
	}
}

// pause waits, and reports whether the context has not ended.
func (b *Bus) pause(ctx context.Context, d time.Duration) bool {
	over := make(chan struct{})
	stop := b.time.AfterFunc(d, func() { close(over) })
	defer stop()
	select {
	case <-over:
		return true
	case <-ctx.Done():
		return false
	}
}

// farewellLimit bounds the deregistration of a node that stops.
const farewellLimit = time.Second

// Close deregisters the node, so that others do not wait for it, and ends the connection. A second Close does nothing.
func (b *Bus) Close() error {
	b.mu.Lock()
	again, s := b.closing, b.session
	b.closing = true
	b.rememberUntil.Store(0)
	b.leadUntil.Store(0)
	b.mu.Unlock()
	if again {
		<-b.ended
		return nil
	}
	var err error
	if s != nil {
		err = s.leave()
	}
	b.stop()
	<-b.ended
	return err
}

var errClosed = errors.New("the bus was closed")

// Group is the announcements of one transaction.
type Group struct {
	tag      string
	payloads []string
	strict   bool
	locals   []func() // for this node, in the order of the jobs
}

// Prepare returns the announcements of a transaction, or nil when there are none. list has the order of the jobs. Call it
// before the transaction commits. Then [Bus.Committed] or [Bus.Undone] must follow.
func (b *Bus) Prepare(list []engine.Announcement) *Group {
	if len(list) == 0 {
		return nil
	}
	g := &Group{tag: rand.Text()}
	for _, a := range list {
		switch a.Delivery {
		case engine.Strict:
			g.strict = true
		case engine.Ordered:
			g.locals = append(g.locals, a.Deliver)
		}
	}
	g.payloads = encode(b.node, g.tag, g.strict, list)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.session != nil { // otherwise the receivers get an empty key as soon as there is one, or the key when it arrives
		b.kept[g.tag] = g
	}
	return g
}

// Payloads returns the notifications that the transaction must send, last: PostgreSQL lets only one transaction at a time commit
// notifications.
func (g *Group) Payloads() []string { return g.payloads }

// Undone forgets a group whose transaction was not committed. It does nothing with nil.
func (b *Bus) Undone(g *Group) {
	if g == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.kept, g.tag)
}

// waiter is a strict change that has been committed.
type waiter struct {
	tag  string
	at   time.Duration   // monotonic; after the commit
	asks map[string]bool // connections that have not acknowledged; nil: not known yet
	done chan struct{}
	stop func() bool
}

// Committed returns a channel that is closed when all nodes have acknowledged the strict announcements of a group, or may not
// use what they remember: after 2 s at most. It returns nil when there is nothing to wait for. Call it in the order of the
// commits, as soon as the commit is certain. It does not wait.
func (b *Bus) Committed(g *Group) <-chan struct{} {
	if g == nil || !g.strict {
		return nil
	}
	w := &waiter{tag: g.tag, at: b.time.Now(), done: make(chan struct{})}
	b.mu.Lock()
	b.waiters = append(b.waiters, w)
	s := b.session
	w.stop = b.time.AfterFunc(lease, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.finish(w)
	})
	b.mu.Unlock()
	if s != nil {
		s.pollNow()
	}
	return w.done
}

// finish ends the wait of a strict change. b.mu is held.
func (b *Bus) finish(w *waiter) {
	i := slices.Index(b.waiters, w)
	if i < 0 {
		return
	}
	b.waiters = slices.Delete(b.waiters, i, i+1)
	w.stop()
	close(w.done)
}

// acknowledged evaluates the acknowledgements that a poll has found, and reports whether changes still wait.
func (b *Bus) acknowledged(s *session, sent time.Duration, rows []row) (waiting bool) {
	now := b.time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.session != s {
		return false
	}
	if !b.members.trusted(now) || !slices.ContainsFunc(rows, func(r row) bool { return r[0] == s.id }) {
		return len(b.waiters) > 0 // the tables were emptied
	}
	position := make(map[string]int, len(b.waiters)) // of a change, from 1
	for i, w := range b.waiters {
		position[w.tag] = i + 1
	}
	acknowledged := make(map[string]int, len(rows)) // how many changes a connection has acknowledged
	for _, r := range rows {
		acknowledged[r[0]] = position[r[2]]
	}
	for i, w := range slices.Clone(b.waiters) {
		if sent < w.at {
			break // nodes may have registered between the poll and the commit
		}
		if w.asks == nil {
			w.asks = b.nodesToAsk(s, rows, now)
		}
		for id := range w.asks {
			if n, registered := acknowledged[id]; !registered || n > i {
				delete(w.asks, id)
			}
		}
		if len(w.asks) == 0 {
			b.finish(w)
		}
	}
	return len(b.waiters) > 0
}

// nodesToAsk returns the connections whose lease may not have ended.
func (b *Bus) nodesToAsk(s *session, rows []row, now time.Duration) map[string]bool {
	ask := make(map[string]bool)
	for _, r := range rows {
		id, beats := r[0], r[1]
		before, known := b.members.nodes[id]
		if id != s.id && !(known && before.beats == beats && before.silent(now)) {
			ask[id] = true
		}
	}
	return ask
}

// releaseSilent has no change wait for nodes whose lease has ended, as a heartbeat sent at a time has shown. A node can have
// begun a new lease between that heartbeat and a later commit. b.mu is held.
func (b *Bus) releaseSilent(sent, now time.Duration) {
	for _, w := range slices.Clone(b.waiters) {
		if w.asks == nil || sent < w.at {
			continue
		}
		for id := range w.asks {
			if n, known := b.members.nodes[id]; known && n.silent(now) {
				delete(w.asks, id)
			}
		}
		if len(w.asks) == 0 {
			b.finish(w)
		}
	}
}
