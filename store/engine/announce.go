package engine

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kontor/store/clock"
	"kontor/store/datadir"
)

// Cluster is the part of an Engine that concerns the processes, or nodes, that share a database. With an engine whose
// database belongs to one process, the methods cost nothing and there is one node.
type Cluster interface {
	// Topic returns the topic of a name, and registers a function that receives the keys of its announcements. Register
	// before reading what an announcement makes stale. A name may have several functions, each of which receives all keys.
	//
	// The functions may run at the same time, except those of Ordered announcements. They must be quick. They may read the database and must not write. They must
	// accept any key: other clients of a database server can forge announcements. An empty key means that announcements were
	// missed, or were too many to list: everything that depends on the topic may have changed.
	Topic(name string, receive func(key string)) *Topic

	// Remembers reports whether this process has received all announcements, so that what it remembers may be used. Check it
	// before each use. A node of a shared database that was stopped or disconnected must return false from the end of its
	// lease on, and until it has caught up.
	Remembers() bool

	// Shared reports whether several processes may use the database at the same time.
	Shared() bool

	// Leads reports whether this process runs the jobs that run once in a cluster. At most one process leads at any time, and
	// at times none does. Another one takes over within seconds.
	Leads() bool

	// Nodes returns the processes that use the database, this one among them, ordered by start. On a shared database the
	// list may be a second old.
	Nodes() []Node

	// Clock returns the clock that decisions use: Config.Clock, or the engine's own when that is nil. The engine's own clock of a
	// shared database follows the server's clock. Like every clock it goes back when it was set back by more than a few seconds.
	Clock() clock.Clock
}

// A Node is a process that uses a database.
type Node struct {
	ID         string // different for each start
	Name       string // as configured, or the host's name and the process id
	Version    string // of the program
	Settings   string // as configured; empty when it is not known
	Started    clock.Time
	LeaseUntil clock.Time    // until then changes wait for this node; 0 without leases
	Lag        time.Duration // since its last sign of life
	Backlog    int           // own ordered announcements that are in transit; known of this process only
	Live       bool          // it has a lease
	Leads      bool
	Self       bool // this process
}

// ThisNode returns the node of this process, for an engine that is opened with c.
func ThisNode(c Config, started clock.Time) Node {
	n := Node{ID: rand.Text(), Name: c.Node, Version: c.Program, Settings: c.Settings, Started: started, Self: true}
	if n.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "node"
		}
		n.Name = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	return n
}

// Delivery says when an announcement reaches the nodes. On this node a receiver never runs later than Write returns, except
// with Ordered on a shared database.
type Delivery uint8

const (
	// Strict announcements have been received by every node that may use what it remembers before Write returns. A caller
	// that only finds the change made by another one does not wait for it.
	Strict Delivery = iota
	// Soon announcements reach other nodes within milliseconds; Write does not wait.
	Soon
	// Ordered announcements reach all nodes in the same order: that of the commits of all nodes. On a shared database Write
	// does not wait for them. They are lost with the connection, and the receivers get an empty key then.
	Ordered
)

// An Announcement tells the receivers of a topic, on every node, about a commit.
type Announcement struct {
	Topic *Topic
	// Key names what has changed. It must be valid UTF-8, and should be short and no secret: every user of a database
	// server can listen. An empty key means everything.
	Key      string
	Delivery Delivery
	// Local is called instead of the receivers on the node that commits; nil calls the receivers there too. It needs the
	// Delivery Ordered.
	Local func()
}

// Deliver calls the receivers of this process.
func (a Announcement) Deliver() {
	if a.Local != nil {
		a.Local()
		return
	}
	a.Topic.Receive(a.Key)
}

// A Topic is a kind of change that nodes announce.
type Topic struct {
	name      string
	receivers atomic.Pointer[[]func(key string)]
}

// Name returns the name of the topic.
func (t *Topic) Name() string { return t.name }

// Receive calls the receivers of this process, one after another.
func (t *Topic) Receive(key string) {
	for _, receive := range *t.receivers.Load() {
		receive(key)
	}
}

// Topics holds the topics of a database. It implements Cluster.Topic. The zero value is ready to use.
type Topics struct {
	mu     sync.Mutex
	topics map[string]*Topic
}

// maxTopicName keeps the names of all topics within one notification.
const maxTopicName = 40

// Topic returns the topic of a name and registers a receiver. It panics on a name that is empty or longer than 40 bytes.
func (t *Topics) Topic(name string, receive func(key string)) *Topic {
	if name == "" || len(name) > maxTopicName {
		panic("topic " + name + ": a name has 1 to 40 bytes")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	topic := t.topics[name]
	if topic == nil {
		topic = &Topic{name: name}
		topic.receivers.Store(new([]func(string)))
		if t.topics == nil {
			t.topics = make(map[string]*Topic)
		}
		t.topics[name] = topic
	}
	before := *topic.receivers.Load()
	receivers := append(before[:len(before):len(before)], receive)
	topic.receivers.Store(&receivers)
	return topic
}

// Receive calls the receivers of a topic in this process. A topic without receivers is ignored: it may belong to another
// version of the program.
func (t *Topics) Receive(name, key string) {
	t.mu.Lock()
	topic := t.topics[name]
	t.mu.Unlock()
	if topic != nil {
		topic.Receive(key)
	}
}

// Reset calls all receivers with an empty key.
func (t *Topics) Reset() {
	t.mu.Lock()
	topics := slices.Collect(maps.Values(t.topics))
	t.mu.Unlock()
	for _, topic := range topics {
		topic.Receive("")
	}
}

// Versions counts the commits that wrote to each table. It implements Engine.Version for an engine whose tables no other
// process writes.
type Versions struct {
	commits atomic.Uint64
	tables  sync.Map // name → *Table
}

// A Table carries the number of the last commit that wrote to it.
type Table struct{ last atomic.Uint64 }

// Written returns the tables that a statement writes to. Call it once for each text: it parses.
func (v *Versions) Written(sql string) []*Table {
	names := WrittenTables(sql)
	tables := make([]*Table, len(names))
	for i, name := range names {
		tables[i] = v.table(name)
	}
	return tables
}

func (v *Versions) table(name string) *Table {
	if t, ok := v.tables.Load(name); ok {
		return t.(*Table)
	}
	t, _ := v.tables.LoadOrStore(name, &Table{})
	return t.(*Table)
}

// Bump counts a commit that wrote to tables. Call it after the commit and before any caller is answered, so that a caller
// that has seen a write never gets an earlier number.
func (v *Versions) Bump(written []*Table) {
	if len(written) == 0 {
		return
	}
	n := v.commits.Add(1)
	for _, t := range written {
		t.last.Store(n)
	}
}

// Version returns the number of the last commit that wrote to one of the tables.
func (v *Versions) Version(tables ...string) uint64 {
	var last uint64
	for _, name := range tables {
		last = max(last, v.table(name).last.Load())
	}
	return last
}

// WrittenTables returns the names of the tables that a statement writes to: those after INSERT INTO, UPDATE and DELETE
// FROM, also within WITH.
func WrittenTables(sql string) []string {
	var found []string
	words := Words(sql)
	for i := 0; i+1 < len(words); i++ {
		next := i + 1
		switch words[i] {
		case "into", "from":
			if verb := words[max(i-1, 0)]; words[i] == "from" && verb != "delete" {
				continue
			}
		case "update":
			if words[next] == "or" { // UPDATE OR IGNORE t
				next += 2
			}
			if next >= len(words) || words[next] == "set" { // ON CONFLICT DO UPDATE SET
				continue
			}
		default:
			continue
		}
		if name := words[next]; !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found
}

// Words returns the words of a statement in lower case, without comments and quoted values. A quoted name is a word.
func Words(sql string) (words []string) {
	for token := range Tokens(sql) {
		if c := token[0]; c == '"' || c != '$' && wordByte(c) {
			words = append(words, strings.ToLower(strings.Trim(token, `"`)))
		}
	}
	return words
}

// Tokens returns the tokens of a statement without white space and comments: words, parameters, quoted names and values
// with their quotes, and single characters.
func Tokens(sql string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := 0; i < len(sql); {
			n, skip := TokenLength(sql[i:])
			if !skip && !yield(sql[i:i+n]) {
				return
			}
			i += n
		}
	}
}

// TokenLength returns the length of the first token of s, and whether it is white space or a comment.
func TokenLength(s string) (n int, skip bool) {
	c := s[0]
	switch {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		return 1, true
	case strings.HasPrefix(s, "--"):
		return lengthTo(s, "\n"), true
	case strings.HasPrefix(s, "/*"):
		return lengthTo(s, "*/"), true
	case c == '\'' || c == '"':
		return 1 + lengthTo(s[1:], s[:1]), false // a doubled quote counts as two tokens, which does no harm
	case wordByte(c):
		for n = 1; n < len(s) && wordByte(s[n]); n++ {
		}
		return n, false
	}
	return 1, false
}

// lengthTo returns the length of s up to and including the end mark, or that of all of s.
func lengthTo(s, end string) int {
	if n := strings.Index(s, end); n >= 0 {
		return n + len(end)
	}
	return len(s)
}

func wordByte(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// A RowWatch receives the keys of the rows of a table that commits change or delete, for caches of single rows. New rows are left
// out: nothing can have been read of them.
//
// The functions are called one after another and must be quick. They must not use the database.
type RowWatch struct {
	Table string
	Key   string // the column that tells rows apart; a text
	// Begin is called before a commit that changes or deletes rows, with their keys as they were. Without keys, all rows may change.
	Begin func(keys []string)
	// End is called after that commit, whether it has succeeded or not, and before a caller learns of it. Between the two, readers may
	// see either state. The first call of End has no Begin: from then on no change is missed.
	End func()
}

// RowWatcher is implemented by engines whose only writer is this process.
type RowWatcher interface {
	// WatchRows registers a watch until the database is closed. It fails for a table whose changes cannot be followed.
	WatchRows(ctx context.Context, w RowWatch) error
}

// Memory keeps a small text over restarts of the process. The zero Memory keeps nothing.
type Memory = datadir.Kept

// Server is implemented by engines of a database server, whose disks and failovers are not theirs.
type Server interface {
	// CheckPrimary returns a Loss while the engine refuses the server that it reaches.
	CheckPrimary(ctx context.Context) error
	// CheckDurability returns an error when the server's configuration does not protect acknowledged writes from a loss of power.
	CheckDurability(ctx context.Context) error
	// CheckRole returns an error when the role of the connection may do more at the server than an engine needs.
	CheckRole(ctx context.Context) error
}
