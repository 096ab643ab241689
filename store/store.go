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
	"log/slog"
	"sync"
	"sync/atomic"

	"kontor/store/audittrail"
	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/fulltext"
	"kontor/store/migrations"
	"kontor/store/postgres"
	"kontor/store/query"
	"kontor/store/sealing"
	"kontor/store/sqlite"
)

// Options say where the data is and what the store uses.
type Options struct {
	// Dir is the data directory. It is created if it is missing.
	Dir string
	// URL is the address of a PostgreSQL database, which several processes may share. With it no directory is used, and
	// SecretKey is required.
	URL string
	// Connections is how many connections read from the database at URL; 0 is the engine's default.
	Connections int
	// Clock is the clock that all decisions use; nil is the engine's own: the system's, or that of a shared database.
	Clock Clock
	// Log receives failures in the background; nil is slog's default.
	Log *slog.Logger
	// SecretKey is the master key in hexadecimal or base64. If it is empty, the key is in the file secret.key of the
	// directory, which is created with a new database.
	SecretKey string
	// PreviousKey is the master key before SecretKey. A database that still has it gets SecretKey, see DB.RotateMasterKey.
	PreviousKey string
	// Fatal is called once when a write or a sync of a data file has failed, with an error that names the file. From
	// then on nothing is written and no write is acknowledged. It should not return; nil prints one line to standard
	// error and ends the process with status 1.
	Fatal func(error)
	// AcceptLoss opens a database that lacks acknowledged writes (ErrLoss). The loss is logged and audited.
	AcceptLoss bool
	// LogLimit is the size of the write-ahead log in bytes from which an alarm is raised; 0 is 256 MiB.
	LogLimit int64
	// Node is the name of this process among those that share the database; empty is the host's name and the process id.
	Node string
	// Program is the version of the program that the nodes show.
	Program string
	// Engine opens the database; nil is postgres.Open with a URL, and sqlite.Open without.
	Engine func(context.Context, engine.Config) (engine.Engine, engine.Report, error)
}

// DB is an open database. All its methods may be called from any goroutine.
type DB struct {
	dir        *datadir.Directory // nil with a URL
	path       string             // names the database in messages
	clock      Clock
	log        *slog.Logger
	keys       *sealing.Keys
	digests    *audittrail.Digester
	guard      *audittrail.Guard
	engine     engine.Engine
	memo       memo
	totals     totals
	recounting struct {
		sync.WaitGroup
		stop context.CancelFunc // nil unless totals are counted in the background
	}
	origin  func(ctx context.Context) Origin
	audited func(seq int64) // nil: nothing follows the audit trail
	changes Changes
	texts   TextFollower
	watch   atomic.Pointer[func(work string)]
	latest  atomic.Int64
	recall  atomic.Uint64 // see Tx.Recall
	closing sync.Once

	live            liveNodes
	exclusive       sync.Mutex // held while Exclusively runs
	keysChanged     *Topic
	keysStale       atomic.Pointer[error] // why the present keys could not be read; nil: they are known
	rotating        sync.Mutex            // held while the master key is replaced or values are sealed again
	sealed          sealedColumns
	onReplaced      []func(context.Context, KeyReplaced) error
	replacedAtStart bool   // the master key, by that in Options
	givenKey        []byte // the master key of Options; nil when it is in the directory
}

// Open opens the database at o.URL or in o.Dir, or creates it. Its errors are one sentence that says what to do. It changes nothing
// when the directory cannot be written or is in use (ErrInUse), or the key is another one (ErrWrongKey). It changes nothing
// either when the database is damaged (ErrCorrupt), was changed by others (ErrTampered), lacks acknowledged writes
// (ErrLoss) or is newer than the program (ErrNewerSchema).
func Open(ctx context.Context, o Options) (*DB, error) {
	db := &DB{log: o.Log}
	if db.log == nil {
		db.log = slog.Default()
	}
	if err := db.place(o); err != nil {
		return nil, err
	}
	db.RegisterSealed(sealedUnshown)
	db.RegisterSealed(db.sealedAnswers())
	db.RegisterSealed(db.sealedChanges())
	report, err := db.openEngine(ctx, o)
	if err != nil {
		return nil, errors.Join(err, db.leave())
	}
	if err := db.auditLoss(ctx, report.Loss); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if db.Shared() { // another node may have changed the keys since they were read, before this one was informed
		if err := db.RenewKeys(ctx); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	if err := db.settleKey(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if len(report.Unprotected) > 0 {
		db.auditUnprotected(ctx, report.Unprotected)
	}
	if db.dir != nil && db.dir.Exposed() {
		db.log.Warn("other users of this machine can read the data directory; run chmod 700 on it", "dir", db.dir.Path())
	}
	return db, nil
}

// errNoSecretKey is returned for a database server without the master key: several nodes need the same one, and none of them
// owns a file for it.
var errNoSecretKey = errors.New("a database on PostgreSQL needs the secret key in KONTOR_SECRET_KEY, the same on every node; make one with: openssl rand -hex 32")

// place finds out where the database is, and locks the data directory if it is there.
func (db *DB) place(o Options) (err error) {
	if o.URL != "" {
		db.path = postgres.Describe(o.URL)
		if o.SecretKey == "" {
			err = errNoSecretKey
		}
		return err
	}
	if db.dir, err = datadir.Open(o.Dir); err == nil {
		db.path = db.dir.File(datadir.Database)
	}
	return err
}

// leave releases the data directory.
func (db *DB) leave() error {
	if db.dir == nil {
		return nil
	}
	return db.dir.Close()
}

func (db *DB) openEngine(ctx context.Context, o Options) (report engine.Report, err error) {
	open := o.Engine
	switch {
	case open != nil:
	case o.URL != "":
		open = postgres.Open
	default:
		open = sqlite.Open
	}
	db.engine, report, err = open(ctx, engine.Config{
		Dir: db.dir, URL: o.URL, Readers: o.Connections, Clock: o.Clock, Node: o.Node, Program: o.Program, Log: db.log, Migrations: migrations.Files, AppendOnly: audittrail.AppendOnlyTables(), Texts: fulltext.Index(),
		Guard: func(fresh bool) (engine.Guard, error) { return db.newGuard(o, fresh) },
		Fatal: o.Fatal, AcceptLoss: o.AcceptLoss, LogLimit: o.LogLimit,
	})
	if err == nil {
		db.clock = db.engine.Clock()
		db.keysChanged = db.Topic(keysTopic, db.keysHaveChanged)
		db.noteTime(db.guard.LastEntryAt())
		db.takeUpTotals(ctx)
	}
	return report, err
}

// masterKeys returns the master keys that the database may have.
func (db *DB) masterKeys(o Options, fresh bool) ([][]byte, error) {
	if db.dir == nil {
		return datadir.GivenKeys(o.SecretKey, o.PreviousKey)
	}
	return db.dir.MasterKeys(o.SecretKey, o.PreviousKey, fresh)
}

// newGuard finds the master key, which a new database creates. The engine has the guard recognise the database before anything
// is derived from the key.
func (db *DB) newGuard(o Options, fresh bool) (engine.Guard, error) {
	masters, err := db.masterKeys(o, fresh)
	if err != nil {
		return nil, err
	}
	if o.SecretKey != "" {
		db.givenKey = masters[0]
	}
	if db.keys, err = sealing.New(masters[0], masters[1:]...); err != nil {
		return nil, err
	}
	db.digests = audittrail.NewDigester(db.keys)
	db.guard = audittrail.NewGuard(db.keys, db.path)
	return groupGuard{db.guard, &db.recall}, nil
}

// auditLoss logs and audits a loss that this start has accepted.
func (db *DB) auditLoss(ctx context.Context, loss *Loss) error {
	if loss == nil {
		return nil
	}
	db.log.Warn("acknowledged writes are missing; opened because the loss was accepted", "loss", loss.Summary())
	return db.InTx(ctx, func(tx *Tx) error {
		tx.Audit(AuditEntry{Actor: NilID, Action: "database.accept_loss", RecType: "database", RecID: NilID, After: loss})
		return nil
	})
}

// auditUnprotected logs and audits that the protection of the audit trail was missing. Entries could be changed meanwhile;
// verifying the trail shows whether they were.
func (db *DB) auditUnprotected(ctx context.Context, missing []string) {
	db.log.Error("triggers that protect the audit trail were missing and have been restored; run \"kontor check\" to see whether entries were changed",
		"triggers", missing)
	err := db.InTx(ctx, func(tx *Tx) error {
		tx.Audit(AuditEntry{Actor: NilID, Action: "audit.triggers_restored", RecType: "audit", RecID: NilID})
		return nil
	})
	if err != nil {
		db.log.Error("the missing triggers could not be recorded in the audit trail", "err", err)
	}
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

// Clean returns nil when no file of the database holds content that was overwritten or deleted before the call. It waits for
// readers of earlier states, until the context ends.
func (db *DB) Clean(ctx context.Context) error { return db.engine.Clean(ctx) }

// CleanOldPages clears unused bytes in pages that earlier versions have written. It does so once for each database.
func (db *DB) CleanOldPages(ctx context.Context) error { return db.engine.CleanOldPages(ctx) }

// Statements returns the texts of the statements that callers have run and that are kept compiled, each once and sorted. It
// waits until every reader was free once, so callers must not hold one.
func (db *DB) Statements(ctx context.Context) ([]string, error) { return db.engine.Statements(ctx) }

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
		db.settleTotals()
		if err = db.engine.Close(); err == nil {
			if failed := db.keepTotals(context.Background()); failed != nil {
				db.log.Warn("totals were not kept; the next start counts them again", "cause", failed)
			}
		}
		err = errors.Join(err, db.leave())
	})
	return err
}
