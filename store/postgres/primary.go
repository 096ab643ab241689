package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"kontor/store/engine"
	"kontor/store/query"
)

// A database may be served by several servers, one after another: a standby is promoted, a backup is restored. Its table
// kontor_primaries is the list of them. Each row has a random id, and the number of commits at its beginning. A node remembers the
// last row that it has seen and the number of commits since. A server whose list lacks that row, or those commits, is a former
// primary, or a standby that had not received everything. The node does not use it.
//
// An accepted row says that an operator has accepted what is missing before it. Then all nodes accept it.
//
// A role without the right to call the functions of thisServer cannot name its server. Then only commits are compared. A row
// without a name belongs to the server of the rows beside it; it never stands for another server.

// createPrimaries is a part of ownTables.
const createPrimaries = `
CREATE TABLE IF NOT EXISTS kontor_primaries (
	n        BIGINT PRIMARY KEY,
	id       TEXT COLLATE "C" NOT NULL,
	server   TEXT COLLATE "C" NOT NULL,
	since    BIGINT NOT NULL,
	accepted BOOLEAN NOT NULL,
	at       TIMESTAMPTZ NOT NULL DEFAULT now()
);
`

const (
	// thisServer names a server and its history: the system's identifier, the database and the timeline. PostgreSQL begins a new
	// timeline when a standby is promoted and when a backup is restored.
	thisServer = `(SELECT system_identifier::text FROM pg_control_system()) || '/' ||
		(SELECT oid::text FROM pg_database WHERE datname = current_database()) || '/' ||
		left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)`

	// appendPrimary needs the lock of the writers, so that since counts all commits before it.
	appendPrimary = `
		INSERT INTO kontor_primaries (n, id, server, since, accepted)
		SELECT COALESCE(MAX(n), 0) + 1, gen_random_uuid()::text, %s, (SELECT number FROM kontor_versions WHERE name = ''), %t
		FROM kontor_primaries;`

	namePrimary = `UPDATE kontor_primaries SET server = %s WHERE id = %s AND server = '';`

	// selectSchemaName returns an empty name when search_path names no schema that exists and that the role may use.
	selectSchemaName = `SELECT COALESCE(current_schema(), ''), to_regclass('kontor_primaries') IS NOT NULL`

	selectPrimaries = `
		SELECT id, server, since, accepted, (SELECT number FROM kontor_versions WHERE name = '')
		FROM kontor_primaries ORDER BY n`
)

// sighting is what a node has seen of the database.
type sighting struct {
	ID       string `json:"id"`       // of the last server; empty when the node has seen nothing
	Server   string `json:"server"`   // for people
	Commits  int64  `json:"commits"`  // all so far
	Accepted int64  `json:"accepted"` // how often an operator has accepted a loss
}

// history is the list of servers that a server has, and what it is now.
type history struct {
	server  string // that was asked; empty when the role may not ask
	schema  string
	rows    []primary
	commits int64
}

// primary is a row of the list.
type primary struct {
	id, server string
	since      int64
	accepted   bool
	named      bool // the server was missing from the row
}

// name gives rows without a server the one of the row before, or else of the row after. An acceptance begins something new, so that
// nothing before it counts.
func (h *history) name() {
	for i := range h.rows {
		if r := &h.rows[i]; r.server == "" && i > 0 && !r.accepted {
			r.server = h.rows[i-1].server
			r.named = r.server != ""
		}
	}
	after := h.server
	for i := len(h.rows) - 1; i >= 0; i-- {
		r := &h.rows[i]
		if r.server == "" {
			r.server, r.named = after, after != ""
		}
		after = r.server
		if r.accepted {
			after = ""
		}
	}
}

// registered reports whether the list ends with the server itself, as far as the server is known, and all rows have their names.
func (h history) registered() bool {
	if len(h.rows) == 0 {
		return false
	}
	last := h.rows[len(h.rows)-1]
	return (h.server == "" || h.server == last.server) && !slices.ContainsFunc(h.rows, func(r primary) bool { return r.named })
}

// end returns the index after the last row of the server that has the row with an id, or -1 if the list lacks the row.
func (h history) end(id string) int {
	at := slices.IndexFunc(h.rows, func(r primary) bool { return r.id == id })
	if at < 0 {
		return -1
	}
	for at++; at < len(h.rows) && h.rows[at].server == h.rows[at-1].server && !h.rows[at].accepted; at++ {
	}
	return at
}

func (h history) accepted() (n int64) {
	for _, row := range h.rows {
		if row.accepted {
			n++
		}
	}
	return n
}

// lost returns why a server lacks what a node has seen, and how many commits are missing if that is known. It returns "" when the
// server has everything.
func (s sighting) lost(h history) (reason string, commits int64) {
	if s.ID == "" || h.accepted() > s.Accepted {
		return "", 0
	}
	end := h.end(s.ID)
	switch {
	case end < 0 && len(h.rows) == 0:
		return fmt.Sprintf("has none of the commits that this node has seen, in its schema %q", h.schema), 0
	case end < 0 || h.accepted() < s.Accepted:
		return "is a former primary, or a copy from before another server took over", 0
	}
	has := h.commits
	if end < len(h.rows) {
		has = h.rows[end].since
	}
	if has < s.Commits {
		return "is a primary that lags behind what this node has seen", s.Commits - has
	}
	return "", 0
}

// primaries is what an engine has seen of the servers of its database.
type primaries struct {
	mu      sync.Mutex
	seen    sighting
	accepts bool // what is missing; only while the database is opened
	memory  *memory
	unnamed atomic.Bool // the role may not ask who the server is, which was logged
	refused atomic.Pointer[engine.Loss]
	logged  string // the last refusal in the log
	at      time.Time
}

// refusal is the error of an attempt to connect to a server that lacks what the node has seen.
type refusal struct{ *engine.Loss }

func (r refusal) Unwrap() []error { return []error{errUnreachable, r.Loss} }

// connect makes a connection to a server that has everything that this node has seen, as accept finds out. With several hosts it tries
// the others, too.
func (e *Engine) connect(ctx context.Context, settings map[string]string, accept pgconn.ValidateConnectFunc) (*pgconn.PgConn, error) {
	pg, err := e.address.connect(ctx, settings, accept)
	if loss, ok := errors.AsType[*engine.Loss](err); ok {
		return nil, refusal{loss}
	}
	return pg, err
}

// verifyWriter is verify for a connection that writes.
func (e *Engine) verifyWriter(ctx context.Context, pg *pgconn.PgConn) error {
	if err := e.verify(ctx, pg); err != nil {
		return err
	}
	found, err := ask(ctx, pg, `SELECT current_setting('transaction_read_only')`)
	if err == nil && found[0][0] == "on" {
		err = errReadOnly
	}
	return err
}

// verify compares a server with what this node has seen.
func (e *Engine) verify(ctx context.Context, pg *pgconn.PgConn) error {
	for {
		p := &e.primaries
		p.mu.Lock()
		before := p.seen
		p.mu.Unlock()
		h, err := e.readHistory(ctx, pg)
		if err != nil {
			return err
		}
		p.mu.Lock()
		if p.seen.ID != before.ID || p.seen.Accepted != before.Accepted { // another connection has found a new server
			p.mu.Unlock()
			continue
		}
		reason, commits := before.lost(h)
		if reason != "" && !p.accepts {
			p.mu.Unlock()
			return e.refuse(reason, commits)
		}
		moved := p.adopt(h)
		p.mu.Unlock()
		p.refused.Store(nil)
		if moved {
			e.moved()
		}
		return nil
	}
}

// adopt notes what a server has. It reports whether that is another server than before. Callers hold p.mu.
func (p *primaries) adopt(h history) (moved bool) {
	if len(h.rows) == 0 {
		return false
	}
	last, commits := h.rows[len(h.rows)-1], h.commits
	moved = p.seen.ID != "" && h.end(p.seen.ID) < len(h.rows)
	if !moved {
		commits = max(commits, p.seen.Commits)
	}
	changed := p.seen.ID != last.id
	p.seen = sighting{ID: last.id, Server: last.server, Commits: commits, Accepted: h.accepted()}
	if changed {
		p.memory.keepNow(p.seen)
	}
	return moved
}

// saw notes that the database has a number of commits.
func (p *primaries) saw(commits int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen.ID != "" && commits > p.seen.Commits {
		p.seen.Commits = commits
		p.memory.keep(p.seen)
	}
}

// behind reports whether a number of commits is smaller than one that was seen: the database was restored to an earlier state.
func (p *primaries) behind(commits int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.ID != "" && commits < p.seen.Commits
}

// refusalPause is the time after which the same refusal is logged again.
const refusalPause = time.Minute

// refuse returns the error for a server that lacks commits, and logs it.
func (e *Engine) refuse(reason string, commits int64) error {
	p := &e.primaries
	loss := &engine.Loss{File: e.address.String(), Reason: reason, Commits: commits, Advice: "connect the node to the server that has these commits"}
	p.refused.Store(loss)
	p.mu.Lock()
	defer p.mu.Unlock()
	if text := loss.Error(); text != p.logged || time.Since(p.at) > refusalPause {
		p.logged, p.at = text, time.Now()
		e.log.Error("this node does not use a database server that lacks acknowledged commits", "cause", text)
	}
	return loss
}

// moved makes all connections be replaced: those from before may be to a former primary.
func (e *Engine) moved() {
	if e.serves.Load() {
		e.log.Warn("another server is the primary of the database now")
	}
	e.replaceConnections()
}

// replaceConnections makes all connections be made and verified again.
func (e *Engine) replaceConnections() {
	e.losses.Add(1)
	if e.serves.Load() {
		e.bus.Reconnect()
	}
}

// readHistory asks a server what it is.
func (e *Engine) readHistory(ctx context.Context, pg *pgconn.PgConn) (h history, err error) {
	if h.server, err = e.identify(ctx, pg); err != nil {
		return h, err
	}
	found, err := ask(ctx, pg, selectSchemaName)
	if err != nil {
		return h, err
	}
	if h.schema = found[0][0]; h.schema == "" {
		return h, errNoSchema
	}
	if found[0][1] != "t" {
		return h, nil
	}
	return h, h.read(ctx, pg)
}

// read reads the list of servers and the number of commits.
func (h *history) read(ctx context.Context, pg *pgconn.PgConn) error {
	found, err := ask(ctx, pg, selectPrimaries)
	if err != nil {
		return err
	}
	h.rows = nil
	for _, row := range found {
		r := primary{id: row[0], server: row[1], accepted: row[3] == "t"}
		if r.since, err = strconv.ParseInt(row[2], 10, 64); err != nil {
			return err
		}
		if h.commits, err = strconv.ParseInt(row[4], 10, 64); err != nil {
			return err
		}
		h.rows = append(h.rows, r)
	}
	h.name()
	return nil
}

// identify returns the name of the server, or "" if the role may not call the functions that return it, or the server lacks them. Other
// errors pass by, and say nothing about the server.
func (e *Engine) identify(ctx context.Context, pg *pgconn.PgConn) (string, error) {
	found, err := ask(ctx, pg, "SELECT "+thisServer)
	switch {
	case hasCode(err, codeNoRight, codeUndefinedFunction):
		if !e.primaries.unnamed.Swap(true) {
			e.log.Warn("the role may not ask which database server this is, so that a failover is recognised by its commits only; "+
				"grant it EXECUTE on pg_control_system, pg_walfile_name and pg_current_wal_insert_lsn", "cause", err)
		}
		return "", nil
	case err != nil:
		return "", err
	}
	e.primaries.unnamed.Store(false)
	return found[0][0], nil
}

// register appends the server to the list, if it is another one than before, and names rows without a name. The connection has a
// transaction with the lock of the writers.
func (e *Engine) register(ctx context.Context, c *conn, server string) error {
	if err := c.roundTrip(); err != nil {
		return err
	}
	h := history{server: server}
	if err := h.read(ctx, c.pg); err != nil {
		return err
	}
	var sql strings.Builder
	for _, r := range h.rows {
		if r.named {
			fmt.Fprintf(&sql, namePrimary, quoted(r.server), quoted(r.id))
		}
	}
	accepts := e.primaries.accepts
	if n := len(h.rows); n == 0 || accepts || server != "" && h.rows[n-1].server != server {
		fmt.Fprintf(&sql, appendPrimary, quoted(server), accepts)
	}
	if sql.Len() == 0 {
		return nil
	}
	return c.script(sql.String())
}

// quoted returns a text as SQL writes it.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// settle registers the server of a new connection, before it writes for the first time.
func (e *Engine) settle(ctx context.Context, c *conn) error {
	h, err := e.readHistory(ctx, c.pg)
	if err != nil || len(h.rows) == 0 || h.registered() {
		return err
	}
	c.ask(beginWrite, nil)
	c.ask(lockWriters, nil)
	if err := e.register(ctx, c, h.server); err != nil {
		return err
	}
	c.ask(commit, nil)
	if err := c.roundTrip(); err != nil {
		return err
	}
	return e.verify(ctx, c.pg)
}

// ask runs a statement and returns its rows as texts.
func ask(ctx context.Context, pg *pgconn.PgConn, sql string) (rows [][]string, err error) {
	results, err := pg.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	for _, values := range results[len(results)-1].Rows {
		row := make([]string, len(values))
		for i, v := range values {
			row[i] = string(v)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// CheckPrimary returns an error while the server that the node can reach lacks what the node has seen.
func (e *Engine) CheckPrimary(context.Context) error {
	if loss := e.primaries.refused.Load(); loss != nil {
		return loss
	}
	return nil
}

const selectDurability = `SELECT current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on'`

// CheckDurability returns an error when a crash of the server's machine may lose or damage what it has confirmed. Some storage needs
// neither setting, so that it is a warning.
func (e *Engine) CheckDurability(ctx context.Context) error {
	var synced, whole bool
	if err := query.NewRow(ctx, e, selectDurability, nil).Scan(&synced, &whole); err != nil {
		return err
	}
	switch {
	case !synced:
		return errors.New("fsync is off at the database server: a loss of power may destroy the database; set it to on, unless the storage guarantees durable writes itself")
	case !whole:
		return errors.New("full_page_writes is off at the database server: a loss of power may damage pages; set it to on, unless the storage writes pages as a whole")
	}
	return nil
}

const selectRole = `SELECT rolname, rolsuper FROM pg_roles WHERE rolname = session_user`

// CheckRole returns an error when the role is a superuser: such a role reads and writes files of the server, and can run programs there.
func (e *Engine) CheckRole(ctx context.Context) error {
	var name string
	var super bool
	if err := query.NewRow(ctx, e, selectRole, nil).Scan(&name, &super); err != nil {
		return err
	}
	if super {
		return fmt.Errorf("the role %q is a superuser of the database server: whoever has its password controls the whole server; create a role that only owns its database", name)
	}
	return nil
}
