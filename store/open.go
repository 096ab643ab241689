package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"kontor/store/audittrail"
	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/fulltext"
	"kontor/store/inspect"
	"kontor/store/migrations"
	"kontor/store/postgres"
	"kontor/store/query"
	"kontor/store/sealing"
	"kontor/store/sqlite"
)

// Options say where the data is and what the store uses.
type Options struct {
	// Dir is the data directory. It is created if it is missing. With URL it may be empty: see engine.Config.Memory.
	Dir string
	// URL is the address of a PostgreSQL database, which several processes may share. SecretKey is required with it.
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
	// Purpose is what the data must be for. A new database keeps it; empty opens data of any purpose, and creates it for production.
	Purpose inspect.Purpose
	// AcceptLoss opens a database that lacks acknowledged writes (ErrLoss). The loss is logged and audited.
	AcceptLoss bool
	// LogLimit is the size of the write-ahead log in bytes from which an alarm is raised; 0 is 256 MiB.
	LogLimit int64
	// Node is the name of this process among those that share the database; empty is the host's name and the process id.
	Node string
	// Settings is a text about the settings of this process, which the other processes read in [Node]; empty: unknown.
	Settings string
	// Program is the version of the program that the nodes show.
	Program string
	// Engine opens the database; nil is postgres.Open with a URL, and sqlite.Open without.
	Engine func(context.Context, engine.Config) (engine.Engine, engine.Report, error)
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
	db.RegisterSealed(sealedChanges)
	report, err := db.openEngine(ctx, o)
	if err != nil {
		return nil, errors.Join(err, db.leave())
	}
	err = db.auditLoss(ctx, report.Loss)
	if err == nil && db.Shared() { // another node may have changed the keys since they were read, before this one was informed
		err = db.RenewKeys(ctx)
	}
	if err == nil {
		err = db.settleKey(ctx)
	}
	if err != nil {
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

func (db *DB) openEngine(ctx context.Context, o Options) (report engine.Report, err error) {
	open, memory := o.Engine, engine.Memory{}
	if o.URL != "" && o.Dir != "" {
		memory = datadir.Keep(o.Dir, datadir.Primary)
	}
	switch {
	case open != nil:
	case o.URL != "":
		open = postgres.Open
	default:
		open = sqlite.Open
	}
	db.engine, report, err = open(ctx, engine.Config{
		Dir: db.dir, URL: o.URL, Memory: memory, Readers: o.Connections, Clock: o.Clock, Node: o.Node, Program: o.Program, Settings: o.Settings, Log: db.log, Migrations: migrations.Files, AppendOnly: audittrail.AppendOnlyTables(), Texts: fulltext.Index(),
		Guard: func(fresh bool) (engine.Guard, error) { return db.newGuard(o, fresh) },
		Fatal: o.Fatal, AcceptLoss: o.AcceptLoss, LogLimit: o.LogLimit,
	})
	if err == nil {
		db.clock = db.engine.Clock()
		db.keysChanged = db.Topic(keysTopic, db.keysHaveChanged)
		db.noteTime(db.guard.LastEntryAt())
		db.moments.openAt(db.base(), db.guard.LastEntryAt())
		db.removeKeptTotals()
	}
	return report, err
}

// keptTotals is the file in which earlier versions have kept totals over a stop. It may have values of records.
const keptTotals = "kontor.totals"

func (db *DB) removeKeptTotals() {
	if db.dir == nil {
		return
	}
	if err := db.dir.Remove(keptTotals); err != nil {
		db.log.Warn("a file of an earlier version cannot be removed; delete it", "file", db.dir.File(keptTotals), "cause", err)
	}
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
	return &purposeGuard{Guard: groupGuard{db.guard, &db.recall}, wanted: o.Purpose, path: db.path}, nil
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

// metaExclusive is the row of the table meta with the id of the node that runs the function of [DB.Exclusively].
const metaExclusive = "exclusive"

const (
	// claimPoll is how often a node looks whether it is its turn.
	claimPoll = 100 * time.Millisecond
	// claimPatience is how long a node without a lease keeps the others waiting. It exceeds the time until the others
	// list a new node.
	claimPatience = 3 * time.Second
)

// Exclusively runs f while no other node of a shared database runs a function in this way: for what a start writes. It waits for the
// turn until the context ends; f must not call it. If a node is killed, the next one follows after some seconds; f must be safe to run again.
func (db *DB) Exclusively(ctx context.Context, f func(ctx context.Context) error) (err error) {
	if !db.Shared() {
		return f(ctx)
	}
	db.exclusive.Lock() // the row distinguishes nodes, not goroutines
	defer db.exclusive.Unlock()
	self := db.self()
	if err := db.awaitTurn(ctx, self); err != nil {
		return fmt.Errorf("wait for another node that is starting: %w", err)
	}
	defer func() {
		err = errors.Join(err, db.InTx(context.WithoutCancel(ctx), func(tx *Tx) error {
			_, err := tx.Exec(ctx, deleteClaim, metaExclusive, self)
			return err
		}))
	}()
	return f(ctx)
}

const deleteClaim = `DELETE FROM meta WHERE name = $1 AND value = $2`

// self returns the id of this node.
func (db *DB) self() string {
	nodes := db.Nodes()
	if i := slices.IndexFunc(nodes, func(n Node) bool { return n.Self }); i >= 0 {
		return nodes[i].ID
	}
	return ""
}

func (db *DB) awaitTurn(ctx context.Context, self string) error {
	poll := time.NewTicker(claimPoll)
	defer poll.Stop()
	missing, since := "", time.Time{} // a node that holds the turn without a lease
	for {
		var holder string
		err := db.InTx(ctx, func(tx *Tx) (err error) {
			holder, err = tx.takeTurn(ctx, self, missing != "" && time.Since(since) > claimPatience, missing)
			return err
		})
		if err != nil || holder == self {
			return err
		}
		switch live := slices.ContainsFunc(db.Nodes(), func(n Node) bool { return n.ID == holder }); {
		case live:
			missing = ""
		case missing != holder:
			missing, since = holder, time.Now()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-poll.C:
		}
	}
}

// takeTurn takes the turn if it is free, or if force is true and the node before still has it. It returns who has it.
func (tx *Tx) takeTurn(ctx context.Context, self string, force bool, before string) (holder string, err error) {
	holder, held, err := query.Meta(ctx, tx, metaExclusive)
	if err != nil || held && !(force && holder == before) {
		return holder, err
	}
	_, err = tx.Exec(ctx, engine.UpsertMeta, metaExclusive, self)
	return self, err
}

// Discard deletes the database, its mark and the key in a directory that no process uses. It is for data that can be created
// again, such as an interrupted demo.
func Discard(dir string) (err error) {
	d, err := datadir.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	for _, database := range []string{datadir.Database, datadir.NewDatabase, datadir.RestoringDatabase} {
		if err := d.Remove(sqlite.Files(database)...); err != nil {
			return err
		}
	}
	if err := d.Remove(datadir.Key, datadir.NewKey, datadir.RestoringKey, sqlite.MarkName, sqlite.RestoredName, keptTotals); err != nil {
		return err
	}
	return datadir.Sync(dir)
}
