// Package postgres implements the engine contract on a PostgreSQL database that several processes, or nodes, share.
//
// It uses pgconn of pgx to connect and speaks PostgreSQL's extended protocol itself: each connection prepares a text once, and
// sends several statements in one round trip. Reads use a bounded pool of connections that cannot write. All writes of a
// node use one connection, on which one goroutine runs the jobs of all callers and commits them in groups.
//
// The groups of all nodes follow one another: each holds an advisory lock from its beginning to its commit. So what a job
// reads stays true until its commit, as with a single process. The result of some statements is known if they succeed: that of
// INSERT … VALUES. They are sent together with the next statement whose result is not known. If one of them fails, its job
// is undone and runs again with every statement waited for.
//
// A commit writes a mark of its node. When the answer to a commit is lost, the mark says whether it happened.
//
// The engine's own tables have names that begin with "kontor_". Durability is the server's: the engine insists on synchronous
// commits, and leaves files, backups and the loss of a server to it.
package postgres

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"kontor/store/clock"
	"kontor/store/engine"
	"kontor/store/internal/jobs"
	"kontor/store/internal/readers"
	"kontor/store/postgres/internal/bus"
	"kontor/store/query"
)

// Engine is an open PostgreSQL database. It implements engine.Engine.
type Engine struct {
	config  engine.Config
	address address
	clock   clock.Clock
	log     *slog.Logger
	guard   engine.Guard
	report  engine.Report
	self    engine.Node
	schema  int64 // the newest of this program
	loads   bool  // a copy fills the database, see CreateSchema
	texts   texts
	engine.Topics

	primaries primaries
	serves    atomic.Bool // start has succeeded

	// losses counts how often the bus has lost its connection. Connections from before may be dead without showing it: they
	// are replaced before their next use.
	losses atomic.Uint64

	pool    *readers.Pool[*reader]
	writer  *writer
	bus     *bus.Bus
	closing sync.Once
}

// start starts what serves the database. c is the connection of the writer.
func (e *Engine) start(ctx context.Context, c *conn) (err error) {
	e.bus, err = bus.Open(ctx, bus.Config{
		Connect: e.connectBus,
		Topics:  &e.Topics, Node: e.self, Log: e.log,
		Lost: func() { e.losses.Add(1) },
	})
	if err != nil {
		return err
	}
	if e.clock == nil {
		e.clock = e.bus.Clock()
	}
	w := &writer{
		e: e, log: e.log, guard: e.guard, conn: c, queue: jobs.NewQueue[*job](), ended: make(chan struct{}),
		progress: jobs.Progress{Start: time.Now()},
	}
	w.hooks = jobs.NewHooks(e.log, &w.progress)
	e.writer = w
	n := e.config.Readers
	if n == 0 {
		n = defaultReaders
	}
	all := make([]*reader, n)
	for i := range all {
		all[i] = newReader(e)
	}
	e.pool = readers.New(all, w.rejectRead)
	e.serves.Store(true)
	go w.goroutine.Loop(w.serve, w.abandonGroup, w.log)
	return nil
}

const selectVersion = `SELECT COALESCE(MAX(number), 0) FROM kontor_versions WHERE name = ANY (string_to_array($1, ','))`

// Version returns a number that grows with each commit, on any node, to one of the tables.
func (e *Engine) Version(ctx context.Context, tables ...string) (uint64, error) {
	var number int64
	err := query.NewRow(ctx, e, selectVersion, []any{strings.Join(tables, ",")}).Scan(&number)
	return uint64(number), err
}

// Close answers all accepted jobs and closes the connections.
func (e *Engine) Close() error {
	var err error
	e.closing.Do(func() {
		e.writer.close()
		e.writer.hooks.Close()
		err = e.bus.Close()
		e.pool.Close()
		e.primaries.memory.close()
	})
	return err
}

// Clean returns nil: PostgreSQL's files are the server's. An old version of a row stays in its table until a vacuum removes it,
// which runs by itself, and in the write-ahead log until the log is recycled.
func (e *Engine) Clean(context.Context) error { return nil }

// CleanOldPages returns nil: no earlier version has written files.
func (e *Engine) CleanOldPages(context.Context) error { return nil }

// connectBus makes a connection for announcements.
func (e *Engine) connectBus(ctx context.Context) (*pgconn.PgConn, error) {
	return e.connect(ctx, nil)
}

// connectWriter makes a connection that writes.
func (e *Engine) connectWriter(ctx context.Context) (*conn, error) {
	losses := e.losses.Load()
	pg, err := e.connect(ctx, writerSettings)
	if err != nil {
		return nil, err
	}
	c := newConn(pg, &e.texts)
	c.losses = losses
	c.patience = writerPatience
	err = c.run(insistOnDurability)
	if err == nil && e.serves.Load() {
		err = e.settle(ctx, c)
	}
	if err != nil {
		return nil, errors.Join(translate(err), c.lose(err))
	}
	return c, nil
}

// insistOnDurability makes commits wait for the disk of the server, and for that of its synchronous standbys. The value belongs to the
// session, so that a later change of the server's configuration, of the database or of the role does not reach it. A stricter value
// of the configuration stays.
const insistOnDurability = `
	SELECT set_config('synchronous_commit',
		CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, FALSE)`
