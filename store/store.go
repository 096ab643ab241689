// Package store keeps all data of Kontor in one embedded database: it opens it, runs statements and
// transactions, and gives what belongs to every change: the audit trail, idempotent requests, sealed
// values, versions of tables.
//
// Reading goes through a pool of read-only connections; all writing goes through one connection whose
// transactions are committed in groups, each with one sync to disk. A write is acknowledged after that
// sync and never before; readers may see it a moment earlier.
//
// The modules own their tables and statements; what a row means is none of the store's business. Its
// limits: one process works on a data directory, and a closure that writes holds up all others while it
// runs.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"kontor/store/internal/sqlite"
)

// Options say where the data is and what the store works with.
type Options struct {
	// Dir is the data directory. It is made if it is missing.
	Dir string
	// Clock is the time that everything is decided by; nil is the system's.
	Clock Clock
	// Log hears of what goes wrong in the background; nil is slog's default.
	Log *slog.Logger
	// SecretKey is the master key in hexadecimal or base64. Without it the key is in the file
	// secret.key of the directory, which a new database makes.
	SecretKey string
	// Fatal is called once when a write or a sync of a data file has failed, with an error that names the
	// file. Nothing is written any more from then on and no write is acknowledged. It should not return;
	// nil prints one line to standard error and ends the process with 1.
	Fatal func(error)
	// AcceptLoss opens a database that lacks acknowledged writes (ErrLoss). That is logged and audited.
	AcceptLoss bool
	// LogLimit is the size of the write-ahead log in bytes from which an alarm is raised; 0 is 256 MiB.
	LogLimit int64
}

// DB is an open database. All its methods may be called from any goroutine.
type DB struct {
	dir      *directory
	clock    Clock
	log      *slog.Logger
	secrets  *secrets
	pool     *pool
	writer   *writer
	versions versions
	memo     memo
	disk     *disk
	mark     *mark

	acceptLoss bool
	accepted   *Loss    // at this start
	found      position // at this start
	logLimit   int64

	unwatch    func()
	background context.CancelFunc // ends what runs beside
	running    sync.WaitGroup
	closing    sync.Once
}

// Now is the time by the store's clock.
func (db *DB) Now() Time { return TimeOf(db.clock.Now()) }

// Clock is the clock that the store was opened with.
func (db *DB) Clock() Clock { return db.clock }

// Dir is the data directory, for files that are kept beside the database.
func (db *DB) Dir() string { return db.dir.path }

// Query runs a statement that gives rows on a reader of the pool. Statements are compiled once and
// kept by their text, so that values belong into args. Rows hold a reader: end them before the next
// query, or use View.
func (db *DB) Query(ctx context.Context, sql string, args ...any) (*Rows, error) {
	return query(ctx, db.pool, sql, args)
}

// QueryRow prepares to read one row. The statement runs when the row is scanned; without a row Scan
// gives ErrNotFound.
func (db *DB) QueryRow(ctx context.Context, sql string, args ...any) *Row {
	return &Row{ctx: ctx, from: db.pool, sql: sql, args: args}
}

// Close answers all writes that were taken in, ends the background work and frees the directory. A
// second Close does nothing.
func (db *DB) Close() error {
	var err error
	db.closing.Do(func() {
		db.background()
		db.running.Wait()
		db.writer.close()
		err = db.writer.syncer.close()
		db.writer.hooks.close()
		db.writer.checkpoints.close()
		db.pool.close()
		err = errors.Join(err, db.closeFiles(), db.dir.close())
	})
	return err
}

// closeFiles closes the last connection, which copies the log into the database and removes it, and the mark. After a
// failure of the disk it changes nothing more.
func (db *DB) closeFiles() error {
	defer db.unwatch()
	if db.disk.err() == nil {
		db.closeInOrder(db.writer.conn)
	}
	if lost := db.disk.err(); lost != nil {
		db.writer.conn.KeepLog()
	}
	err := db.writer.conn.Close()
	if lost := db.disk.err(); lost != nil {
		return errors.Join(lost, db.mark.file.Close())
	}
	if markErr := db.mark.finish(); markErr != nil && !isFull(markErr) {
		err = errors.Join(err, db.disk.fail(markErr))
	}
	return err
}

// start brings up what serves an opened and migrated database.
func (db *DB) start(conn *sqlite.Conn) error {
	path := db.dir.file(databaseName)
	pool, err := openPool(path)
	if err != nil {
		return fmt.Errorf("open %s for reading: %w", path, err)
	}
	w := &writer{
		db: db, log: db.log, conn: conn, position: db.found,
		queue: make(chan *job, queueLength), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	w.checkpoints, err = newCheckpointer(db, &w.counters)
	if err != nil {
		pool.close()
		return fmt.Errorf("open %s for checkpoints: %w", path, err)
	}
	w.syncer, err = newSyncer(path, db, &w.counters, w.answer)
	if err != nil {
		w.checkpoints.close()
		pool.close()
		return fmt.Errorf("open the log of %s: %w", path, err)
	}
	w.hooks = newHookQueue(db.log)
	db.pool, db.writer = pool, w
	go w.loop()
	return nil
}
