// Package store is the database as modules use it: transactions, queries, and what belongs to every change (the audit
// trail, idempotent requests, sealed values, versions of tables).
//
// The modules own their tables and statements; the store does not know what a row means. It does not depend on a
// particular engine either: the contract between them is in [kontor/store/engine].
//
// Queries use a bounded pool of readers. Writes are jobs that one writer runs one after another and commits in groups.
// A write is acknowledged after its commit is durable and never before; readers may see it a moment earlier. Limits:
// one process uses a data directory, and a job blocks all other writes while it runs.
//
// The store publishes one view of its tables:
//
//   - audit_trail: the entries of the audit trail, with all columns. Only the store writes entries.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kontor/store/audittrail"
	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/idempotency"
	"kontor/store/query"
	"kontor/store/sealing"
	"kontor/store/sqlite"
)

// DB is an open database. All its methods may be called from any goroutine.
type DB struct {
	dir     *datadir.Directory // nil with a URL
	path    string             // names the database in messages
	clock   Clock
	log     *slog.Logger
	keys    *sealing.Keys
	digests *audittrail.Digester
	guard   *audittrail.Guard
	engine  engine.Engine
	totals  totals
	origin  func(ctx context.Context) Origin
	audited func(seq int64) // nil: nothing follows the audit trail
	changes Changes
	texts   TextFollower
	watch   atomic.Pointer[func(work string)]
	latest  atomic.Int64
	recall  atomic.Uint64 // see Tx.Recall
	closing sync.Once

	exclusive       sync.Mutex // held while Exclusively runs
	keysChanged     *Topic
	keysStale       atomic.Pointer[error] // why the present keys could not be read; nil: they are known
	rotating        sync.Mutex            // held while the master key is replaced or values are sealed again
	sealed          sealedColumns
	moments         moments
	onReplaced      []func(context.Context, KeyReplaced) error
	replacedAtStart bool   // the master key, by that in Options
	givenKey        []byte // the master key of Options; nil when it is in the directory
}

// Now returns the time by the store's clock.
func (db *DB) Now() Time { return clock.Of(db.clock.Now()) }

// Latest returns the latest time that a transaction has used, in this process or in the last audit entry of an earlier one.
// When it is later than Now, the clock was set back.
func (db *DB) Latest() Time { return Time(db.latest.Load()) }

// noteTime moves Latest forward. Transactions call it one after another.
func (db *DB) noteTime(now Time) {
	if int64(now) > db.latest.Load() {
		db.latest.Store(int64(now))
	}
}

// Clock returns the clock that decisions use: that of Options, or the engine's own.
func (db *DB) Clock() Clock { return db.clock }

// Dir returns the data directory, for files that are kept beside the database. It is empty for a database at a URL.
func (db *DB) Dir() string {
	if db.dir == nil {
		return ""
	}
	return db.dir.Path()
}

// Query runs a statement that returns rows, on a reader of the pool. Statements are compiled once and kept by their
// text, so that values belong into args. The rows hold a reader: close them before the next query, or use View.
func (db *DB) Query(ctx context.Context, sql string, args ...any) (*Rows, error) {
	return query.Query(ctx, db.engine, sql, args)
}

// QueryRow runs a statement that returns one row. Scan the row, which holds a reader until then; without a row Scan returns
// ErrNotFound.
func (db *DB) QueryRow(ctx context.Context, sql string, args ...any) *Row {
	return query.NewRow(ctx, db.engine, sql, args)
}

// View calls fn with one state of the database, whatever is committed in the meantime. It holds a reader, and the log
// cannot start again while it runs: keep it short.
func (db *DB) View(ctx context.Context, fn func(v *View) error) error {
	return db.engine.View(ctx, func(s engine.Source) error { return fn(query.NewView(s, db.Now())) })
}

// Version returns a number that grows whenever a committed write touched one of the tables. Read it before reading what is
// to be remembered under it. It does not count what a foreign key deletes by itself. Where several processes write, it reads the
// number from the database.
func (db *DB) Version(ctx context.Context, tables ...string) (uint64, error) {
	return db.engine.Version(ctx, tables...)
}

// Stats returns counts since the database was opened.
func (db *DB) Stats() Stats { return db.engine.Stats() }

// Ready reports whether the database can read and write, and whether writes make progress.
func (db *DB) Ready(ctx context.Context) error {
	if err := db.keysLost(); err != nil {
		return err
	}
	return db.engine.Ready(ctx)
}

// quotedValue is a value in the words of a database.
var quotedValue = regexp.MustCompile(`'(?:[^']|'')*'`)

// Explain returns how the database would run a statement, in its own words. It does not run it. Texts in quotation marks are replaced,
// because PostgreSQL shows the values of parameters.
func (db *DB) Explain(ctx context.Context, sql string, args ...any) ([]string, error) {
	statement, column := db.engine.Explain(sql)
	return All(ctx, db, func(row Scanner) (step string, err error) {
		err = row.Scan(append(slices.Repeat([]any{Ignored}, column), &step)...)
		return quotedValue.ReplaceAllString(step, "'?'"), err
	}, statement, args...)
}

// Clean returns nil when no file of the database holds content that was overwritten or deleted before the call. It waits for
// readers of earlier states, until the context ends.
func (db *DB) Clean(ctx context.Context) error { return db.engine.Clean(ctx) }

// CleanOldPages clears unused bytes in pages that earlier versions have written. It does so once for each database.
func (db *DB) CleanOldPages(ctx context.Context) error { return db.engine.CleanOldPages(ctx) }

// Record begins to take states of the database with the pages that change, for a continuous backup. Only one caller at a time
// may do so, and must close the recorder before the database. PostgreSQL has backups of its own: errors.ErrUnsupported.
func (db *DB) Record() (*sqlite.Recorder, error) {
	e, ok := db.engine.(*sqlite.Engine)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return e.Record()
}

// Close answers all accepted writes, ends the background work and releases the directory. A second Close does nothing.
func (db *DB) Close() error {
	var err error
	db.closing.Do(func() {
		err = errors.Join(db.engine.Close(), db.leave())
	})
	return err
}

// leave releases the data directory.
func (db *DB) leave() error {
	if db.dir == nil {
		return nil
	}
	return db.dir.Close()
}

// CheckPrimary returns an error while this node refuses the database server that it reaches, because acknowledged commits are
// missing there.
func (db *DB) CheckPrimary(ctx context.Context) error {
	return db.checkServer(ctx, engine.Server.CheckPrimary)
}

// CheckDurability returns an error while the configuration of the database server lets a loss of power destroy acknowledged writes.
func (db *DB) CheckDurability(ctx context.Context) error {
	return db.checkServer(ctx, engine.Server.CheckDurability)
}

// CheckRole returns an error when the role with which this node signs in to a database server may do more than Kontor needs.
func (db *DB) CheckRole(ctx context.Context) error {
	return db.checkServer(ctx, engine.Server.CheckRole)
}

// checkServer checks the database server, if there is one.
func (db *DB) checkServer(ctx context.Context, check func(engine.Server, context.Context) error) error {
	if s, ok := db.engine.(engine.Server); ok {
		return check(s, ctx)
	}
	return nil
}

// The types that modules use, from the packages below.
type (
	// Clock returns the present time.
	Clock = clock.Clock
	// ShiftedClock shows another time than the clock below it.
	ShiftedClock = clock.Shifted
	// Time is a moment in Unix milliseconds, UTC.
	Time = clock.Time

	// Querier runs statements that read: *DB, *View and *Tx.
	Querier = query.Querier
	// Rows steps through the result of a query.
	Rows = query.Rows
	// Row is a query for one row.
	Row = query.Row
	// View reads one state of the database.
	View = query.View

	// Stats are counts since the database was opened.
	Stats = engine.Stats
	// Timing is how often something was done, and how long it took.
	Timing = engine.Timing
	// Loss says which acknowledged writes a database lacks.
	Loss = engine.Loss
	// CallerKey is the context key of the caller that statements are run for.
	CallerKey = engine.CallerKey

	// AuditEntry says who did what to which record.
	AuditEntry = audittrail.Entry
	// Origin is where a change or an event came from.
	Origin = audittrail.Origin
	// Record is a record as the audit trail sees it.
	Record = audittrail.Record
	// Digest is what the audit trail stores of a record.
	Digest = audittrail.Digest

	// Idempotency identifies a request that may be repeated.
	Idempotency = idempotency.Request
	// Answer is the answer of a request, encoded once. Make one with [DB.Answer] and hand it to [Tx.Respond].
	Answer = idempotency.Answer
	// Encoded is an answer in the forms in which it is digested, sent and kept for repetitions.
	Encoded = idempotency.Encoded
	// Responder is a request that encodes the answers of its transactions. When it encodes, it must read the database with
	// [QuerierFrom].
	Responder = idempotency.Responder
	// ResponderKey is the context key of the responder.
	ResponderKey = idempotency.ResponderKey
	// Replay is the error of a request that was answered before. It holds the answer.
	Replay = idempotency.Replay
)

// ReusedText is a destination of texts whose memory is used again by the next scan.
type ReusedText = query.ReusedText

// Ignored is the destination of a column that Scan does not read.
var Ignored = query.Ignored

// The kinds of errors, to distinguish with errors.Is. See the packages below for their meaning.
var (
	ErrNotFound         = engine.ErrNotFound
	ErrDuplicate        = engine.ErrDuplicate
	ErrMissingReference = engine.ErrMissingReference
	ErrConflict         = engine.ErrConflict
	ErrBusy             = engine.ErrBusy
	ErrFull             = engine.ErrFull
	ErrIO               = engine.ErrIO
	ErrReadOnly         = engine.ErrReadOnly
	ErrCorrupt          = engine.ErrCorrupt
	ErrNested           = engine.ErrNested
	ErrOutcomeUnknown   = engine.ErrOutcomeUnknown
	ErrStalled          = engine.ErrStalled
	ErrClosed           = engine.ErrClosed
	ErrNewerSchema      = engine.ErrNewerSchema
	ErrLoss             = engine.ErrLoss
	ErrTampered         = audittrail.ErrTampered
	ErrWrongKey         = sealing.ErrWrongKey
	ErrNoKey            = sealing.ErrNoKey
	ErrInUse            = datadir.ErrInUse
)

// Temporary reports whether the same call may succeed later. The client's answer is 503 then.
func Temporary(err error) bool { return engine.Temporary(err) }

// TimeOf returns t, cut to milliseconds.
func TimeOf(t time.Time) Time { return clock.Of(t) }

// ParseTime reads RFC 3339 with any offset and fraction.
func ParseTime(s string) (Time, error) { return clock.Parse(s) }

// CheckLog returns an error while the write-ahead log is larger than its limit. The database can be used nevertheless.
func (db *DB) CheckLog(context.Context) error {
	if s := db.Stats(); s.LogOverLimit {
		return fmt.Errorf("the write-ahead log has %d bytes and cannot be emptied; its limit is %d", s.LogBytes, s.LogLimit)
	}
	return nil
}

// A Topic is a kind of change that transactions announce to all processes, or nodes, that use the database.
type Topic struct{ topic *engine.Topic }

// A Node is a process that uses the database.
type Node = engine.Node

// Topic returns the topic of a name, and registers a function that receives the keys of its announcements. Register before
// reading what an announcement makes stale. When a name is registered again, all of its functions receive all keys.
//
// receive must be quick. It may read the database and must not write. An empty key means that announcements were missed:
// everything that depends on the topic may have changed. Any text may arrive as a key, see engine.Cluster.
func (db *DB) Topic(name string, receive func(key string)) *Topic {
	return &Topic{db.engine.Topic(name, receive)}
}

// Announce announces a change after which no node may use what it remembers under the key: every node has received the key
// before InTx returns, or may not use what it remembers. Nothing is announced when the transaction fails.
func (tx *Tx) Announce(t *Topic, key string) {
	tx.tx.Announce(engine.Announcement{Topic: t.topic, Key: key, Delivery: engine.Strict})
}

// AnnounceSoon announces a change that this node receives before InTx returns, and others within milliseconds.
func (tx *Tx) AnnounceSoon(t *Topic, key string) {
	tx.tx.Announce(engine.Announcement{Topic: t.topic, Key: key, Delivery: engine.Soon})
}

// Publish announces the commit to all nodes in the order of the commits of all nodes. On this node local is called instead of
// the receivers of the topic, unless it is nil. With one process that happens before InTx returns. On a shared database
// InTx does not wait for it. Publications that are lost with a connection are replaced by an empty key.
func (tx *Tx) Publish(t *Topic, key string, local func()) {
	tx.tx.Announce(engine.Announcement{Topic: t.topic, Key: key, Delivery: engine.Ordered, Local: local})
}

// Remembers reports whether what this process remembers of the database may be used. It is true with one process. On a shared
// database it is false while the process cannot know whether it has received all announcements: read the database then.
// It takes tens of nanoseconds; ask before each use.
func (db *DB) Remembers() bool { return db.engine.Remembers() }

// Shared reports whether several processes may use the database at the same time.
func (db *DB) Shared() bool { return db.engine.Shared() }

// Leads reports whether this process runs the jobs that run once in a cluster. At most one process leads.
func (db *DB) Leads() bool { return db.engine.Leads() }

// Nodes returns the processes that use the database, ordered by start. On a shared database the list may be a second old.
func (db *DB) Nodes() []Node { return db.engine.Nodes() }

// LiveNodes returns the number of processes that use the database, this one among them. On a shared database it may be a second old,
// so that callers may ask for each request.
func (db *DB) LiveNodes() int {
	if !db.Shared() {
		return 1
	}
	n := 0
	for _, node := range db.Nodes() {
		if node.Live {
			n++
		}
	}
	return max(1, n)
}

// Heavy reports that the calling goroutine begins work that belongs before the transaction: rendering, encoding, encryption,
// signatures. It does nothing unless a test watches, see [DB.WatchWriter].
func (db *DB) Heavy(work string) {
	if watch := db.watch.Load(); watch != nil && db.engine.InJob() {
		(*watch)(work)
	}
}

// WatchWriter makes Heavy call f, on the writer's goroutine, when a function of InTx does heavy work while all other writes
// wait. It is for the test that keeps such work out of transactions.
func (db *DB) WatchWriter(f func(work string)) { db.watch.Store(&f) }
