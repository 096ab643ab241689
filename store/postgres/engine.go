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
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"

	"kontor/store/clock"
	"kontor/store/engine"
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
	rights    rights
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
	w := &writer{e: e, guard: e.guard, conn: c}
	w.Init(e.log, w)
	w.Unreachable = errUnreachable
	e.writer = w
	n := e.config.Readers
	if n == 0 {
		n = defaultReaders
	}
	all := make([]*reader, n)
	for i := range all {
		all[i] = newReader(e)
	}
	e.pool = readers.New(all, w.RejectRead)
	e.serves.Store(true)
	w.Start()
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
		e.writer.Hooks.Close()
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
	return e.connect(ctx, nil, e.verify)
}

// connectWriter makes a connection that writes.
func (e *Engine) connectWriter(ctx context.Context) (*conn, error) {
	losses := e.losses.Load()
	pg, err := e.connect(ctx, writerSettings, e.verifyWriter)
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

// Remembers reports whether this node has received all announcements.
func (e *Engine) Remembers() bool { return e.bus.Remembers() }

// Shared returns true.
func (e *Engine) Shared() bool { return true }

// Leads reports whether this node runs the jobs of the cluster.
func (e *Engine) Leads() bool { return e.bus.Leads() }

// Nodes returns the nodes, as the last heartbeat saw them.
func (e *Engine) Nodes() []engine.Node { return e.bus.Nodes() }

// Clock returns the clock that the database was opened with, or that of the server.
func (e *Engine) Clock() clock.Clock { return e.clock }

// Stats returns the present counts. The log and its checkpoints are the server's.
func (e *Engine) Stats() engine.Stats {
	s := e.writer.Stats()
	s.Readers, s.Revoked = e.pool.Waiting(), e.pool.Revocations()
	s.ClockSteps = e.bus.ClockSteps()
	return s
}

// Explain asks for the plan with its estimates.
func (e *Engine) Explain(sql string) (statement string, column int) { return "EXPLAIN " + sql, 0 }

// The codes of PostgreSQL's errors that the engine distinguishes.
const (
	codeUniqueViolation     = "23505"
	codeExclusionViolation  = "23P01"
	codeForeignKeyViolation = "23503"
	codeNoSpace             = "53100"
	codeOutOfMemory         = "53200"
	codeReadOnly            = "25006"
	codeCanceled            = "57014"
	codeLockTimeout         = "55P03"
	codeDataCorrupted       = "XX001"
	codeIndexCorrupted      = "XX002"
	codeIOError             = "58030"
	codeUnknownStatement    = "26000"
	codeFeature             = "0A000" // "cached plan must not change result type"
	codeUndefinedFunction   = "42883"
	codeNoRight             = "42501"
	codeNoTable             = "42P01" // search_path was changed, or the right to use the schema was revoked
	codeDatatypeMismatch    = "42804"
	codeIndeterminateType   = "42P18"
	codeAmbiguousFunction   = "42725"
	codeNoNul               = "22021" // a byte that UTF-8 does not have, or NUL in a text
)

// errUnreachable wraps errors of connections.
var errUnreachable = fmt.Errorf("%w: PostgreSQL cannot be reached", engine.ErrBusy)

// translate adds the kind of the error to an error of PostgreSQL or of a connection.
func translate(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, engine.ErrBusy) {
		return err
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		if kind := classify(pg.Code); kind != nil {
			return fmt.Errorf("%w: %w", kind, err)
		}
		return err
	}
	if isConnectionError(err) {
		return fmt.Errorf("%w: %w", errUnreachable, err)
	}
	return err
}

// classify returns the kind of an error by its code, or nil when callers do not distinguish it.
func classify(code string) error {
	switch code {
	case codeUniqueViolation, codeExclusionViolation:
		return engine.ErrDuplicate
	case codeForeignKeyViolation:
		return engine.ErrMissingReference
	case codeNoSpace, codeOutOfMemory:
		return engine.ErrFull
	case codeReadOnly, codeNoRight, codeNoTable:
		return engine.ErrReadOnly
	case codeDataCorrupted, codeIndexCorrupted:
		return engine.ErrCorrupt
	case codeIOError:
		return engine.ErrIO
	case codeNoNul:
		return engine.ErrConflict
	}
	switch {
	case strings.HasPrefix(code, "23"):
		return engine.ErrConflict
	case code == codeCanceled, code == codeLockTimeout, strings.HasPrefix(code, "40"), strings.HasPrefix(code, "08"),
		strings.HasPrefix(code, "53"), strings.HasPrefix(code, "57"), strings.HasPrefix(code, "25P03"):
		return engine.ErrBusy
	}
	return nil
}

// isConnectionError reports whether a connection was lost or could not be made.
func isConnectionError(err error) bool {
	_, network := errors.AsType[net.Error](err)
	_, connect := errors.AsType[*pgconn.ConnectError](err)
	return network || connect || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, errBroken)
}

// hasCode reports whether an error is one of PostgreSQL with one of the codes.
func hasCode(err error, codes ...string) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && slices.Contains(codes, pg.Code)
}
