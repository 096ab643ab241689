package bus

import (
	"cmp"
	"slices"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"kontor/store/clock"
	"kontor/store/engine"
)

// removeAfter is how long a node must have been silent before the leader removes it.
const removeAfter = 10 * lease

// observed is a registered connection, as this node sees it.
type observed struct {
	engine.Node
	id      string // of the connection; Node.ID is that of the process
	backend string
	beats   string
	since   time.Duration // monotonic; when this value of beats was first seen
}

// leader is the row of the cluster.
type leader struct {
	id    string // of the connection; empty: no node leads
	beats string
}

// seen is the answer to a heartbeat.
type seen struct {
	time      time.Time
	backend   string // server process that answered
	confirmed bool   // this node still leads
	since     int64  // when the tables were found empty, by the server's clock in ms; 0: never
	leader    leader
	nodes     []observed
}

// members is how a node sees the others.
type members struct {
	self  string // id of the connection of this node
	nodes map[string]observed
	list  []engine.Node // as of the last heartbeat, see Nodes

	leader      leader
	leaderSince time.Duration // monotonic; when this row was first seen

	since       int64         // as in seen
	trustedFrom time.Duration // monotonic; when the list of nodes was known to be complete
	beatSent    time.Duration // monotonic; of the last heartbeat that was answered
}

// parseBeat reads the rows of a heartbeat. A heartbeat that found no row of its own has no effect: the session must end.
func parseBeat(rows []row) (seen, error) {
	if len(rows) == 0 || rows[0][2] != "t" {
		return seen{}, errRemoved
	}
	r := rows[0]
	since, _ := strconv.ParseInt(r[4], 10, 64) // a column of this type
	found := seen{time: microseconds(r[0]), backend: r[1], confirmed: r[3] == "t", since: since, leader: leader{id: r[5], beats: r[6]}}
	for _, r := range rows {
		started, _ := strconv.ParseInt(r[11], 10, 64) // a column of this type
		found.nodes = append(found.nodes, observed{
			id: r[7], backend: r[13], beats: r[12],
			Node: engine.Node{ID: r[8], Name: r[9], Version: r[10], Started: clock.Time(started), Settings: r[14]},
		})
	}
	return found, nil
}

// next is what a heartbeat asks for.
type next struct {
	claim  *leader   // the leader to take over from
	remove *observed // a node to remove
}

// renew begins a new lease with the answer to a heartbeat, unless the session has ended.
func (b *Bus) renew(s *session, sent, received time.Duration, found seen) (n next) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.session != s || b.closing {
		return next{}
	}
	b.rememberUntil.Store(int64(sent + usable))
	if found.confirmed {
		b.leadUntil.Store(int64(sent + usable))
	} else {
		b.leadUntil.Store(0)
	}
	m := &b.members
	m.beatSent = sent
	m.observe(found, received)
	m.list = m.nodesAt(received, found, clockOf(b.clock))
	for i := range m.list {
		if m.list[i].Settings == sameSettings {
			m.list[i].Settings = b.config.Node.Settings
		}
	}
	b.releaseSilent(sent, received)
	if !found.confirmed && m.mayClaim(received) {
		n.claim = &m.leader
	}
	if found.confirmed {
		n.remove = m.silentFor(removeAfter, received)
	}
	return n
}

// lead begins to lead, for a claim that was sent at a time.
func (b *Bus) lead(s *session, sent time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.session == s && !b.closing {
		b.leadUntil.Store(int64(sent + usable))
	}
}

// observe notes which nodes have sent a heartbeat since the last time.
func (m *members) observe(found seen, now time.Duration) {
	if found.leader != m.leader || m.nodes == nil {
		m.leader, m.leaderSince = found.leader, now
	}
	if found.since != m.since || m.nodes == nil {
		m.since, m.trustedFrom = found.since, now
		if found.since != 0 {
			age := found.time.Sub(time.UnixMilli(found.since))
			m.trustedFrom += min(max(lease-age, 0), lease)
		}
	}
	nodes := make(map[string]observed, len(found.nodes))
	for _, n := range found.nodes {
		n.since = now
		if before, known := m.nodes[n.id]; known && before.beats == n.beats {
			n.since = before.since
		}
		nodes[n.id] = n
	}
	m.nodes = nodes
}

// trusted reports whether all nodes with a lease are in the tables. They are empty after a crash of the server, while nodes
// that have not noticed it yet may use what they remember.
func (m *members) trusted(now time.Duration) bool { return now >= m.trustedFrom }

// silent reports whether the lease of a node has certainly ended.
func (n observed) silent(now time.Duration) bool { return now-n.since >= lease }

// mayClaim reports whether no node leads.
func (m *members) mayClaim(now time.Duration) bool {
	_, present := m.nodes[m.leader.id]
	return m.trusted(now) && (!present || now-m.leaderSince >= lease)
}

// silentFor returns a node that has been silent for a time, or nil.
func (m *members) silentFor(d, now time.Duration) *observed {
	for _, n := range m.nodes {
		if n.id != m.self && now-n.since >= d {
			return &n
		}
	}
	return nil
}

// nodesAt returns the nodes for Nodes.
func (m *members) nodesAt(now time.Duration, found seen, shown clock.Time) []engine.Node {
	list := make([]engine.Node, 0, len(m.nodes))
	for id, o := range m.nodes {
		n := o.Node
		n.Self = id == m.self
		n.Leads = id == found.leader.id && !o.silent(now)
		n.Lag = now - o.since
		n.LeaseUntil = shown.Add(lease - n.Lag)
		n.Live = n.Lag < lease
		list = append(list, n)
	}
	sort.Slice(list, func(i, j int) bool {
		a, b := list[i], list[j]
		return cmp.Or(cmp.Compare(a.Started, b.Started), cmp.Compare(a.ID, b.ID)) < 0
	})
	return list
}

// Nodes returns the nodes as of the last heartbeat, and this one as it is now.
func (b *Bus) Nodes() []engine.Node {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.time.Now()
	list := slices.Clone(b.members.list)
	for i := range list {
		if list[i].Self {
			list[i].Lag = now - b.members.beatSent
			list[i].Live = b.Remembers()
			list[i].Leads = b.Leads()
			list[i].Backlog = len(b.kept)
		}
	}
	return list
}

// clockOf returns the time of the server.
func clockOf(c *Clock) clock.Time { return clock.Of(c.Now()) }

// Clock follows the clock of the server. It is wrong by at most half a round trip of the best recent answer, and by what
// the two clocks have drifted since. When the server's clock was set forward, Clock jumps. When it was set back by a few seconds, Clock
// runs at half speed until the two agree again, so that it does not go back. When it was set back by more, Clock goes back, too:
// otherwise the nodes would disagree for twice as long.
type Clock struct {
	time    Time
	line    atomic.Pointer[line]
	stepped func(by time.Duration) // called when the server's clock was set by more than maxSlew; nil does nothing

	mu         sync.Mutex
	sampled    time.Duration // when the last sample was taken
	low, high  int64         // bounds of the difference between the server's clock and the monotonic one
	hasSamples bool
}

// line maps the monotonic clock to the server's.
type line struct {
	from       time.Duration // monotonic
	shows      int64         // Unix time in ns at from
	slowUntil  time.Duration // until then the clock runs at half speed
	difference int64         // between shown and monotonic time after slowUntil
	last       *atomic.Int64 // the latest time that was returned, so that goroutines agree on the order; a new one after a step back
}

func (l *line) at(now time.Duration) int64 {
	if now < l.slowUntil {
		return l.shows + int64(now-l.from)/2
	}
	return l.difference + int64(now)
}

// newClock returns a clock that shows the machine's time until it has a sample.
func newClock(t Time) *Clock {
	c := &Clock{time: t}
	c.line.Store(&line{difference: clock.System{}.Now().UnixNano() - int64(t.Now()), last: new(atomic.Int64)})
	return c
}

// Now returns the time.
func (c *Clock) Now() time.Time {
	l := c.line.Load()
	now := l.at(c.time.Now())
	for {
		last := l.last.Load()
		if now <= last {
			return time.Unix(0, last)
		}
		if l.last.CompareAndSwap(last, now) {
			return time.Unix(0, now)
		}
	}
}

// drift is the largest relative difference in speed between two clocks that are both in order.
const drift = 1.0 / 5000

// sample corrects the clock: between the monotonic times sent and received, the server's clock showed shown.
func (c *Clock) sample(sent, received time.Duration, shown time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	low, high := shown.UnixNano()-int64(received), shown.UnixNano()-int64(sent)
	slack := int64(float64(received-c.sampled) * drift)
	if c.hasSamples && low <= c.high+slack && high >= c.low-slack {
		low, high = max(low, c.low-slack), min(high, c.high+slack)
	} // else a clock was set
	first := !c.hasSamples
	c.low, c.high, c.sampled, c.hasSamples = low, high, received, true
	before := c.line.Load()
	if first {
		c.line.Store(&line{difference: low + (high-low)/2, last: before.last})
		return
	}
	if before.difference < low || before.difference > high {
		c.steer(before, low+(high-low)/2)
	}
}

// maxSlew is the longest step back that Clock hides by running at half speed, and the shortest step that is reported.
const maxSlew = 3 * time.Second

// steer changes to another difference.
func (c *Clock) steer(before *line, difference int64) {
	now := c.time.Now()
	shows := before.at(now)
	next := &line{from: now, shows: shows, slowUntil: now, difference: difference, last: before.last}
	ahead := time.Duration(shows - (difference + int64(now)))
	switch {
	case ahead > maxSlew:
		next.last = new(atomic.Int64)
	case ahead > 0:
		next.slowUntil += 2 * ahead
	}
	c.line.Store(next)
	if c.stepped != nil && ahead.Abs() > maxSlew {
		c.stepped(-ahead)
	}
}
