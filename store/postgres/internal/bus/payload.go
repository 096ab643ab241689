package bus

import (
	"cmp"
	"encoding/json"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"unicode/utf8"

	"kontor/store/engine"
)

const (
	// maxPayload is the length of a notification in bytes. PostgreSQL accepts less than 8,000.
	maxPayload = 7800
	// maxPayloads bounds the notifications of a group. Longer lists of keys are shortened.
	maxPayloads = 8
	// maxPairs bounds the bytes of the pairs in one notification: maxPayload without the rest of the message.
	maxPairs = maxPayload - 150
	// format is the number of this encoding.
	format = 1
	// otherFormat begins a message of another version of the program. Its receivers cannot know what has changed.
	otherFormat = `{"v":`
)

// message is a notification of a group.
type message struct {
	Format int         `json:"v"`
	Node   string      `json:"n"`           // that has committed the group
	Tag    string      `json:"t"`           // of the group, at random
	Strict bool        `json:"s,omitempty"` // the group waits for acknowledgements of the tag
	Last   bool        `json:"l,omitempty"` // of the notifications of the group
	Pairs  [][2]string `json:"p,omitempty"` // topics and keys
}

// pairSize returns how many bytes a pair takes in a message at most.
func pairSize(p [2]string) int { return len(`["",""],`) + textSize(p[0]) + textSize(p[1]) }

// textSize returns how many bytes the content of a JSON string takes at most.
func textSize(s string) int {
	size := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c == 0x7f:
			size += len(`\u0000`)
		case c == 0xe2: // the first of the three bytes of U+2028 and U+2029, which are escaped
			size += len(`\u2028`) - 2
		default:
			size++
		}
	}
	return size
}

// pairs returns the topics and keys of announcements in their order. An idempotent announcement is listed once.
func pairs(list []engine.Announcement) [][2]string {
	found := make([][2]string, 0, len(list))
	seen := make(map[[2]string]bool)
	for _, a := range list {
		p := [2]string{a.Topic.Name(), a.Key}
		if !utf8.ValidString(p[1]) || pairSize(p) > maxPairs {
			p[1] = ""
		}
		if a.Delivery != engine.Ordered {
			if seen[p] {
				continue
			}
			seen[p] = true
		}
		found = append(found, p)
	}
	return found
}

// split distributes pairs to at most maxPayloads lists that fit into a notification each. When there are too many, it
// replaces the keys of the largest topics by an empty one.
func split(all [][2]string) [][][2]string {
	for {
		var lists [][][2]string
		size := maxPairs + 1
		for _, p := range all {
			n := pairSize(p)
			if size+n > maxPairs {
				lists, size = append(lists, nil), 0
			}
			lists[len(lists)-1] = append(lists[len(lists)-1], p)
			size += n
		}
		if len(lists) <= maxPayloads {
			return lists
		}
		all = shorten(all)
	}
}

// shorten replaces the keys of the topic that takes the most bytes by an empty one, where the topic appears first.
func shorten(all [][2]string) [][2]string {
	sizes := make(map[string]int)
	for _, p := range all {
		sizes[p[0]] += pairSize(p)
	}
	largest := slices.MaxFunc(slices.Sorted(maps.Keys(sizes)), func(a, b string) int { return cmp.Compare(sizes[a], sizes[b]) })
	var kept [][2]string
	found := false
	for _, p := range all {
		switch {
		case p[0] != largest:
			kept = append(kept, p)
		case !found:
			found = true
			kept = append(kept, [2]string{largest, ""})
		}
	}
	return kept
}

// encode returns the payloads of a group.
func encode(node, tag string, strict bool, list []engine.Announcement) []string {
	lists := split(pairs(list))
	payloads := make([]string, len(lists))
	for i, part := range lists {
		encoded, _ := json.Marshal(message{ // strings and booleans cannot fail
			Format: format, Node: node, Tag: tag, Strict: strict, Last: i == len(lists)-1, Pairs: part,
		})
		payloads[i] = string(encoded)
	}
	return payloads
}

// decode returns the message in a payload. known is false for what this version of the program does not understand.
func decode(payload string) (m message, known bool) {
	if err := json.Unmarshal([]byte(payload), &m); err != nil || m.Format != format {
		return message{}, false
	}
	return m, true
}

// The tables are unlogged: their content is worth nothing after a crash of the server. They are empty then, as they are on
// a standby that has become the primary. Nodes of different versions of the program use them, so that columns may only be
// added. The transaction that creates them must survive a crash, after which they would be taken for new.
//
//   - kontor_cluster has one row. since is the time at which the row was made, or 0 when the tables were made with it, before
//     any node had a lease. leader is the node that leads, and beats counts its heartbeats.
//   - kontor_nodes has a row for each connection to the bus. node is the id of the process. beats counts heartbeats.
//   - kontor_acks holds the last strict change of the process publisher that the connection listener has acknowledged.
const createTables = `
	SELECT set_config('synchronous_commit', 'on', TRUE);
	SELECT pg_advisory_xact_lock(hashtextextended('kontor bus ' || current_schema(), 0));
	CREATE UNLOGGED TABLE IF NOT EXISTS kontor_cluster (
		one BOOLEAN PRIMARY KEY CHECK (one),
		since BIGINT NOT NULL,
		leader TEXT COLLATE "C" NOT NULL DEFAULT '',
		beats BIGINT NOT NULL DEFAULT 0
	) WITH (fillfactor = 10);
	CREATE UNLOGGED TABLE IF NOT EXISTS kontor_nodes (
		id TEXT COLLATE "C" PRIMARY KEY,
		node TEXT COLLATE "C" NOT NULL,
		name TEXT NOT NULL,
		version TEXT NOT NULL,
		started BIGINT NOT NULL,
		backend INTEGER NOT NULL,
		beats BIGINT NOT NULL DEFAULT 0
	) WITH (fillfactor = 10);
	CREATE UNLOGGED TABLE IF NOT EXISTS kontor_acks (
		publisher TEXT COLLATE "C",
		listener TEXT COLLATE "C",
		tag TEXT NOT NULL,
		PRIMARY KEY (publisher, listener)
	) WITH (fillfactor = 10);
	ALTER TABLE kontor_nodes ADD COLUMN IF NOT EXISTS settings TEXT NOT NULL DEFAULT '';
	INSERT INTO kontor_cluster (one, since) VALUES (TRUE, 0) ON CONFLICT DO NOTHING`

// The names of the statements of a connection, and their texts.
const (
	stmtSetUp = "set_up"
	stmtJoin  = "join"
	stmtLeave = "leave"
	stmtBeat  = "beat"
	stmtClaim = "claim"
	stmtPoll  = "poll"
	stmtAck   = "ack"
	stmtSweep = "sweep"
	stmtEnd   = "end"
)

// sameSettings stands for the settings of the node that asks.
const sameSettings = "="

// serverTime is the server's clock in microseconds of Unix time.
const serverTime = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`

// selectServer returns who the server is: it follows sessionSettings.
const selectServer = `
	SELECT pg_backend_pid(), coalesce(current_schema()::regnamespace::oid::bigint::text, ''), pg_is_in_recovery(),
		EXISTS (SELECT FROM pg_attribute WHERE attname = 'settings' AND attrelid = to_regclass(quote_ident(current_schema()) || '.kontor_nodes')), ` + serverTime

var statements = map[string]string{
	// After a crash of the server the tables are empty.
	stmtSetUp: `INSERT INTO kontor_cluster (one, since) VALUES (TRUE, ` + serverTime + ` / 1000) ON CONFLICT DO NOTHING`,

	// $2 is the id of an earlier connection of the same process.
	stmtJoin: `
		WITH earlier AS (DELETE FROM kontor_nodes WHERE id = $2), acks AS (DELETE FROM kontor_acks WHERE listener = $2)
		INSERT INTO kontor_nodes (id, node, name, version, started, settings, backend)
		VALUES ($1, $3, $4, $5, $6::bigint, $7, pg_backend_pid())`,

	// $2 is the id of the process.
	stmtLeave: `
		WITH resigned AS (UPDATE kontor_cluster SET leader = '', beats = beats + 1 WHERE leader = $1),
			acks AS (DELETE FROM kontor_acks WHERE listener = $1 OR publisher = $2)
		DELETE FROM kontor_nodes WHERE id = $1`,

	// A heartbeat. A leader confirms in the same statement that it still leads. The rows of the nodes are those before it. Settings
	// that equal those of this node, as they nearly always do, are sent as sameSettings.
	stmtBeat: `
		WITH beat AS (UPDATE kontor_nodes SET beats = beats + 1 WHERE id = $1 RETURNING id),
			confirmed AS (UPDATE kontor_cluster SET beats = beats + 1 WHERE leader = $1 RETURNING one)
		SELECT ` + serverTime + `, pg_backend_pid(), EXISTS (SELECT FROM beat), EXISTS (SELECT FROM confirmed),
			c.since, c.leader, c.beats, n.id, n.node, n.name, n.version, n.started, n.beats, n.backend,
			CASE WHEN n.settings = (SELECT settings FROM kontor_nodes WHERE id = $1) THEN '` + sameSettings + `' ELSE n.settings END
		FROM kontor_cluster c LEFT JOIN kontor_nodes n ON TRUE`,

	// Takes over from a leader that has not confirmed since beats was $3.
	stmtClaim: `
		UPDATE kontor_cluster SET leader = $1, beats = beats + 1 WHERE leader = $2 AND beats = $3::bigint RETURNING one`,

	stmtPoll: `
		SELECT n.id, n.beats, coalesce(a.tag, '')
		FROM kontor_nodes n LEFT JOIN kontor_acks a ON a.publisher = $1 AND a.listener = n.id`,

	// $2 and $3 are arrays of publishers and tags. Unknown publishers are left out: they are forged, or have stopped.
	stmtAck: `
		INSERT INTO kontor_acks (publisher, listener, tag)
		SELECT a.publisher, $1, a.tag
		FROM unnest($2::text[], $3::text[]) a (publisher, tag)
		WHERE EXISTS (SELECT FROM kontor_nodes n WHERE n.node = a.publisher)
		ON CONFLICT (publisher, listener) DO UPDATE SET tag = excluded.tag`,

	// Removes a node that has been silent since beats was $2, and acknowledgements that are not needed any more.
	stmtSweep: `
		WITH gone AS (DELETE FROM kontor_nodes WHERE id = $1 AND beats = $2::bigint RETURNING id)
		DELETE FROM kontor_acks a
		WHERE NOT EXISTS (SELECT FROM kontor_nodes n WHERE n.id = a.listener AND n.id <> $1)
			OR NOT EXISTS (SELECT FROM kontor_nodes n WHERE n.node = a.publisher AND n.id <> $1)`,

	// Ends the connection of a node that was removed. If its process is stopped, the server would keep notifications for it.
	stmtEnd: `
		SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE pid = $1::integer AND application_name = $2 AND datname = current_database()`,
}

// sessionSettings make a connection independent of the settings of the database and of its user.
const sessionSettings = `
	SET application_name = '%s'; SET synchronous_commit = off; SET statement_timeout = '5s'; SET lock_timeout = '5s';
	SET idle_session_timeout = 0; SET default_transaction_read_only = off; SET default_transaction_isolation = 'read committed';
	SET client_min_messages = error;`

// maxPublishers bounds the acknowledgements that wait to be sent.
const maxPublishers = 1000

// notified handles a notification, which any user of the database can have sent. Its error ends the session.
func (s *session) notified(channel, payload string) error {
	s.mu.Lock()
	ours := channel == s.channel
	s.mu.Unlock()
	if !ours {
		return nil
	}
	if err := s.reset(); err != nil {
		return err
	}
	m, known := decode(payload)
	switch {
	case known:
		return s.received(m)
	case strings.HasPrefix(payload, otherFormat):
		return s.deliver(s.bus.config.Topics.Reset)
	}
	return nil // of another program
}

// received handles a message of a node.
func (s *session) received(m message) error {
	b := s.bus
	if m.Node == b.node {
		if g := b.takeKept(m); g != nil {
			if m.Last {
				b.runLocals(g)
			}
			return nil
		}
	}
	for _, p := range m.Pairs {
		if err := s.deliver(func() { b.config.Topics.Receive(p[0], p[1]) }); err != nil {
			return err
		}
	}
	if m.Last && m.Strict && m.Node != b.node && isID(m.Node) && isID(m.Tag) {
		s.mu.Lock()
		if len(s.acks) < maxPublishers {
			s.acks[m.Node] = m.Tag
		}
		s.mu.Unlock()
		s.wakeSender()
	}
	return nil
}

// takeKept returns the group that this process has prepared, or nil. The last message of the group removes it.
func (b *Bus) takeKept(m message) *Group {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.kept[m.Tag]
	if m.Last {
		delete(b.kept, m.Tag)
	}
	return g
}

// runLocals calls the functions of a group whose notification has arrived.
func (b *Bus) runLocals(g *Group) {
	for _, local := range g.locals {
		func() {
			defer func() {
				if v := recover(); v != nil {
					b.log.Error("panic after a commit", "panic", v, "stack", string(debug.Stack()))
				}
			}()
			local()
		}()
	}
}

// isID reports whether a text of a notification can be an id: letters and digits.
func isID(text string) bool {
	if len(text) == 0 || len(text) > 64 {
		return false
	}
	for i := range len(text) {
		c := text[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}
