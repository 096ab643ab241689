package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"kontor/store/internal/sqlite"
)

var (
	// ErrWrongKey says that the master key is not the one the database was made with.
	ErrWrongKey = errors.New("wrong secret key")
	// ErrNewerSchema says that a newer program has worked on the database.
	ErrNewerSchema = errors.New("database was made by a newer version of Kontor")
)

// checkAtStart is how long the start waits for the check of the database. What is left of it then goes
// on in the background: a start is measured in milliseconds, a check of gigabytes in minutes.
const checkAtStart = 25 * time.Millisecond

// Open opens the database in o.Dir, or makes it. It fails with one sentence that says what to do, and
// changes nothing then, when the directory cannot be written or is in use (ErrInUse), the database is
// damaged (ErrCorrupt) or newer than the program (ErrNewerSchema), or the key is not its own
// (ErrWrongKey).
func Open(ctx context.Context, o Options) (*DB, error) {
	db := &DB{clock: o.Clock, log: o.Log, disk: newDisk(o.Fatal), acceptLoss: o.AcceptLoss, logLimit: o.LogLimit}
	if db.logLimit == 0 {
		db.logLimit = defaultLogLimit
	}
	if db.clock == nil {
		db.clock = systemClock{}
	}
	if db.log == nil {
		db.log = slog.Default()
	}
	dir, err := openDirectory(o.Dir)
	if err != nil {
		return nil, err
	}
	db.dir = dir
	if err := db.open(ctx, o.SecretKey); err != nil {
		return nil, errors.Join(err, dir.close())
	}
	if dir.exposed() {
		db.log.Warn("others on this machine may look into the data directory; chmod 700 is enough for Kontor", "dir", dir.path)
	}
	return db, nil
}

func (db *DB) open(ctx context.Context, givenKey string) (err error) {
	fresh, err := db.dir.findDatabase()
	if err != nil {
		return err
	}
	if fresh {
		if err := db.dir.beginSetup(); err != nil {
			return err
		}
		defer func() {
			if err != nil {
				db.dir.abandonSetup()
			}
		}()
	}
	key, err := db.dir.masterKey(givenKey, fresh)
	if err != nil {
		return err
	}
	if db.secrets, err = newSecrets(key); err != nil {
		return err
	}
	if fresh {
		if err := db.dir.neverHadDatabase(db.secrets); err != nil {
			return err
		}
		if err := db.setUp(ctx); err != nil {
			return err
		}
	}
	path := db.dir.file(databaseName)
	if db.unwatch, err = db.disk.watch.Add(path); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			db.unwatch()
		}
	}()
	scan, err := fromDisk(path)
	if err != nil {
		return err
	}
	conn, err := connect(path, sqlite.ReadWrite, writerPragmas)
	if err != nil {
		return explain(path, err)
	}
	if scan.Bytes > 0 {
		conn.KeepLog() // until the start has succeeded: a start that is refused changes nothing
	}
	checked, missing, err := db.prepare(ctx, conn, path, scan, fresh)
	if err == nil {
		err = db.takeUp(ctx, conn, path, scan)
	}
	if err != nil {
		conn.Close()
		return db.disk.prefer(err)
	}
	background, cancel := context.WithCancel(context.Background())
	db.background = cancel
	if err := db.noteAcceptedLoss(ctx); err != nil {
		return errors.Join(err, db.Close())
	}
	if !checked {
		db.running.Go(func() { db.checkInBackground(background, path) })
	}
	if len(missing) > 0 {
		if err := db.reportUnguarded(ctx, missing); err != nil {
			db.log.Error("the missing triggers could not be noted in the audit trail", "err", err)
		}
	}
	return nil
}

// prepare checks what is there and brings the schema up to date. It reports whether the database was checked to its end,
// and the triggers of the audit trail that a database in use had lost.
func (db *DB) prepare(
	ctx context.Context, conn *sqlite.Conn, path string, scan sqlite.LogScan, fresh bool,
) (checked bool, unguarded []string, err error) {
	version, err := schemaVersion(conn)
	if err != nil {
		return false, nil, explain(path, err)
	}
	latest, err := latestVersion()
	if err != nil {
		return false, nil, err
	}
	if version > latest {
		return false, nil, fmt.Errorf("%s has schema %d, this program knows %d: %w", path, version, latest, ErrNewerSchema)
	}
	state := keyUnset
	if version > 0 {
		if state, err = db.secrets.checkKey(conn, path); err != nil {
			return false, nil, err
		}
	}
	checked = fresh
	if !fresh {
		if checked, err = checkBriefly(ctx, path); err != nil {
			return false, nil, explain(path, err)
		}
	}
	if version == latest { // a trail that was tampered with is named before what it lacks
		if err := db.settle(ctx, conn, path, state); err != nil {
			return false, nil, err
		}
	}
	if !fresh && version > 0 {
		if err := db.compareWithMark(conn, path, scan); err != nil {
			return false, nil, err
		}
	}
	if version < latest {
		if err := migrate(ctx, path); err != nil {
			return false, nil, err
		}
		if err := db.settle(ctx, conn, path, state); err != nil {
			return false, nil, err
		}
	}
	missing, err := guard(ctx, conn)
	if err != nil || state == keyUnset {
		return checked, nil, err
	}
	return checked, missing, nil
}

// explain says in one sentence what is wrong with a database file.
func explain(path string, err error) error {
	if errors.Is(err, ErrCorrupt) {
		return fmt.Errorf("%s cannot be used and was left as it is; restore a backup: %w", path, err)
	}
	return fmt.Errorf("%s cannot be used: %w", path, err)
}

// checkBriefly gives the check the time that the start has for it, and tells whether that was enough.
func checkBriefly(ctx context.Context, path string) (done bool, err error) {
	short, cancel := context.WithTimeout(ctx, checkAtStart)
	defer cancel()
	err = quickCheck(short, path)
	if errors.Is(err, context.DeadlineExceeded) {
		return false, ctx.Err()
	}
	return err == nil, err
}

// quickCheck looks through the pages of the database until the context ends. It does so on a
// connection of its own, whose page cache goes with it.
func quickCheck(ctx context.Context, path string) error {
	conn, err := connect(path, sqlite.ReadOnly, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetContext(ctx)
	var verdict string
	if err := readKept(conn, pragmaCheck, nil, &verdict); err != nil {
		return err
	}
	return unlessUnread(conn, judge(verdict))
}

// unlessUnread returns the verdict of a check, unless that comes of a read that failed: what was not read is not damaged.
func unlessUnread(conn *sqlite.Conn, verdict error) error {
	if unread := conn.ReadError(); verdict != nil && unread != nil {
		return fmt.Errorf("%w: %w", ErrIO, unread)
	}
	return verdict
}

// judge reads the first line of an integrity check.
func judge(verdict string) error {
	if verdict == "ok" {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrCorrupt, strings.Join(strings.Fields(verdict), " "))
}

// checkInBackground checks a database that is too large to be checked at the start. Damage makes the
// database unready and is told to the log.
func (db *DB) checkInBackground(ctx context.Context, path string) {
	err := quickCheck(ctx, path)
	if err == nil || ctx.Err() != nil || db.disk.err() != nil {
		return
	}
	if errors.Is(err, ErrCorrupt) {
		err = explain(path, err)
		db.writer.counters.damaged.Store(&err)
	}
	db.log.Error("check of the database failed", "err", err)
}
