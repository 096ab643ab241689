// Package sqlite implements the engine contract on an embedded SQLite database, with the pure-Go SQLite of
// modernc.org/sqlite.
//
// Reads use a pool of read-only connections. All writes use one connection, on which one goroutine runs the jobs of all
// callers and commits them in groups. The syncer syncs the log of each group and answers its callers. The checkpointer
// copies the log into the database file.
//
// All files of a database are accessed through a file layer of our own (package binding), which reports failed writes and
// syncs and verifies the checksums of pages. A mark beside the database records how far the log was acknowledged.
//
// Limits: one process uses a data directory, and a job blocks all other writes while it runs.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"

	lib "modernc.org/sqlite/lib"

	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/internal/readers"
	"kontor/store/sqlite/internal/binding"
)

// Engine is an open SQLite database. It implements engine.Engine.
type Engine struct {
	config     engine.Config
	dir        *datadir.Directory
	clock      clock.Clock
	log        *slog.Logger
	guard      engine.Guard
	appendOnly []string
	report     engine.Report
	self       engine.Node
	engine.Topics

	pool     *readers.Pool[*reader]
	rollback func(*reader) error
	writer   *writer
	versions engine.Versions
	touches  touches
	watches  watches
	plans    countPlans
	disk     *disk
	mark     *mark

	unwatch        func() // ends the watch of the disk
	removeListener func() // ends the reports of damaged pages
	stopBackground context.CancelFunc
	background     sync.WaitGroup
	closing        sync.Once
}

// Version returns a number that grows with each commit to one of the tables. It does not fail.
func (e *Engine) Version(_ context.Context, tables ...string) (uint64, error) {
	return e.versions.Version(tables...), nil
}

// start starts the goroutines that serve a database. found is its position. saved says that the database holds its lineage.
func (e *Engine) start(conn *binding.Conn, found position, lineage Lineage, saved bool) error {
	path := e.dir.File(datadir.Database)
	e.touches.committed.Store(found.commits)
	conn.OnRowChange(func(r *binding.RowChange) {
		e.touches.note(r)
		e.watches.note(r)
	})
	w := &writer{
		clock: e.clock, conn: conn, disk: e.disk, guard: e.guard, versions: &e.versions, touches: &e.touches, watches: &e.watches,
		position: found, lineage: lineage, lineageSaved: saved,
	}
	w.Init(e.log, w)
	e.rollback = func(r *reader) error { return runKept(r.conn, rollback) }
	pool, err := e.openPool(path, w.RejectRead)
	if err != nil {
		return fmt.Errorf("open %s for reading: %w", path, err)
	}
	if e.removeListener, err = binding.OnDamage(path, w.pageDamaged); err != nil {
		pool.Close()
		return err
	}
	w.checkpoints, err = newCheckpointer(path, e.log, e.disk, e.mark, e.config.LogLimit)
	if err != nil {
		pool.Close()
		return fmt.Errorf("open %s for checkpoints: %w", path, err)
	}
	w.syncer, err = openSyncer(path, e.disk, e.mark, &w.Counters.Synced, &w.Progress, w.Answer)
	if err != nil {
		w.checkpoints.close()
		pool.Close()
		return fmt.Errorf("open the log of %s: %w", path, err)
	}
	e.pool, e.writer = pool, w
	w.Start()
	return nil
}

// pageDamaged makes the database unready. A damaged page is never used, but more pages may be damaged.
func (w *writer) pageDamaged(page *binding.PageError) {
	err := fmt.Errorf("%w: %w; restore a backup", engine.ErrCorrupt, page)
	if w.damaged.CompareAndSwap(nil, &err) {
		w.Log.Error("the database is damaged", "err", page)
	}
}

// Close answers all accepted jobs, ends the background work and closes the files.
func (e *Engine) Close() error {
	var err error
	e.closing.Do(func() {
		e.stopBackground()
		e.background.Wait()
		e.writer.Close()
		err = e.writer.syncer.close()
		e.writer.Hooks.Close()
		e.writer.checkpoints.close()
		e.pool.Close()
		err = errors.Join(err, e.closeFiles())
		e.removeListener()
	})
	return err
}

// closeFiles closes the last connection, which copies the log into the database and deletes it, and the mark. After a
// failure of the disk it changes no file.
func (e *Engine) closeFiles() error {
	defer e.unwatch()
	conn := e.writer.conn
	if e.disk.err() == nil {
		e.recordCleanEnd(conn)
	}
	if e.disk.err() != nil {
		conn.KeepLog()
	}
	err := conn.Close()
	if failure := e.disk.err(); failure != nil {
		return errors.Join(failure, e.mark.file.Close())
	}
	if markErr := e.mark.finish(); markErr != nil && !isFull(markErr) {
		err = errors.Join(err, e.disk.fail(markErr))
	}
	return err
}

// One process uses a data directory, which its lock ensures. So it leads, and has received every announcement.

// Remembers returns true.
func (e *Engine) Remembers() bool { return true }

// Shared returns false.
func (e *Engine) Shared() bool { return false }

// Leads returns true.
func (e *Engine) Leads() bool { return true }

// Nodes returns this process.
func (e *Engine) Nodes() []engine.Node { return []engine.Node{e.self} }

// Clock returns the clock that the database was opened with.
func (e *Engine) Clock() clock.Clock { return e.clock }

const (
	// readerMap is how much of the file readers map instead of copying it page by page.
	readerMap = 256 << 20
	// pageCacheKiB is the size of a reader's cache for pages that are not mapped.
	pageCacheKiB = 4 << 10
	// lockWait is how long a statement waits for a lock, in milliseconds. There is one writer, and in WAL mode readers do
	// not wait; only recovery after a crash and a checkpoint that resets the log take locks.
	lockWait = 5000

	beginWrite = "BEGIN IMMEDIATE"
	beginRead  = "BEGIN"
	commit     = "COMMIT"
	rollback   = "ROLLBACK"
	savepoint  = "SAVEPOINT job"
	release    = "RELEASE job"
	rollbackTo = "ROLLBACK TO job"

	pragmaCheck = "PRAGMA quick_check(1)"

	// logSuffix follows the name of a database in the name of its write-ahead log.
	logSuffix = "-wal"
)

// writerPragmas leave the sync of the log, which makes a commit survive a loss of power, to the syncer: NORMAL syncs where the
// log starts again, FULL would sync at each commit and block the writer. The checkpointer runs the checkpoints: our hook for
// the length of the log has replaced SQLite's own, and "PRAGMA wal_autocheckpoint" would remove it.
var writerPragmas = []string{
	"PRAGMA journal_mode = WAL",
	"PRAGMA synchronous = NORMAL",
	"PRAGMA journal_size_limit = 67108864",
	"PRAGMA secure_delete = ON", // deleted content is overwritten with zeros
	"PRAGMA foreign_keys = ON",
	"PRAGMA trusted_schema = OFF",
	"PRAGMA temp_store = MEMORY",
	// As in every other engine; a prefix search can then use an index.
	"PRAGMA case_sensitive_like = ON",
	fmt.Sprintf("PRAGMA cache_size = -%d", 4*pageCacheKiB),
}

var readerPragmas = []string{
	"PRAGMA query_only = ON",
	"PRAGMA trusted_schema = OFF",
	"PRAGMA temp_store = MEMORY",
	"PRAGMA case_sensitive_like = ON",
	fmt.Sprintf("PRAGMA mmap_size = %d", readerMap),
	fmt.Sprintf("PRAGMA cache_size = -%d", pageCacheKiB),
}

// connect opens the database file and prepares the connection with the pragmas.
func connect(path string, mode binding.Mode, pragmas []string) (*binding.Conn, error) {
	c, err := binding.Open(path, mode)
	if err != nil {
		return nil, translate(err)
	}
	c.BusyTimeout(lockWait)
	for _, p := range pragmas {
		if err := c.Run(p); err != nil {
			c.Close()
			return nil, translate(err)
		}
	}
	return c, nil
}

// translate adds the kind of the error to an error of SQLite.
func translate(err error) error {
	if e, ok := errors.AsType[*binding.Error](err); ok {
		if kind := classify(e); kind != nil {
			return fmt.Errorf("%w: %w", kind, err)
		}
	}
	return err
}

// classify returns the kind of an error, or nil when callers do not distinguish it.
func classify(e *binding.Error) error {
	switch e.Code {
	case lib.SQLITE_CONSTRAINT_UNIQUE, lib.SQLITE_CONSTRAINT_PRIMARYKEY, lib.SQLITE_CONSTRAINT_ROWID:
		return engine.ErrDuplicate
	case lib.SQLITE_CONSTRAINT_FOREIGNKEY:
		return engine.ErrMissingReference
	case lib.SQLITE_CONSTRAINT_TRIGGER: // ON DELETE RESTRICT, or our own triggers
		if e.Message == "FOREIGN KEY constraint failed" {
			return engine.ErrMissingReference
		}
	case lib.SQLITE_IOERR_NOMEM:
		return nil
	case lib.SQLITE_IOERR_DATA: // a page does not have its checksum
		return engine.ErrCorrupt
	}
	switch e.Primary() {
	case lib.SQLITE_IOERR:
		return classifyErrno(e.Errno, engine.ErrIO)
	case lib.SQLITE_CANTOPEN:
		return classifyErrno(e.Errno, engine.ErrReadOnly)
	case lib.SQLITE_CONSTRAINT:
		return engine.ErrConflict
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return engine.ErrBusy
	case lib.SQLITE_FULL:
		return engine.ErrFull
	case lib.SQLITE_READONLY, lib.SQLITE_PERM:
		return engine.ErrReadOnly
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		return engine.ErrCorrupt
	}
	return nil
}

// classifyErrno returns the kind of an error number, or the kind of the result code for other numbers.
func classifyErrno(errno syscall.Errno, otherwise error) error {
	switch errno {
	case syscall.ENOSPC, syscall.EDQUOT:
		return engine.ErrFull
	case syscall.EIO:
		return engine.ErrIO
	case syscall.EROFS, syscall.EACCES, syscall.EPERM:
		return engine.ErrReadOnly
	}
	return otherwise
}

// isFull reports whether an error says that there is no space for a write.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

func isReadOnlyFileSystem(err error) bool { return errors.Is(err, syscall.EROFS) }

// Stats returns the present counts.
func (e *Engine) Stats() engine.Stats {
	c := e.writer.checkpoints
	s := e.writer.Stats()
	s.Readers, s.Revoked = e.pool.Waiting(), e.pool.Revocations()
	s.Checkpoint = c.copies.Read()
	s.Checkpoints = uint64(s.Checkpoint.Count)
	s.LogBytes, s.LogUncopied, s.LogLimit, s.LogOverLimit = e.writer.syncer.logBytes(), c.uncopied(), c.limit, c.over.Load()
	return s
}

// Ready reports whether the database can read and write, and whether writes make progress.
func (e *Engine) Ready(ctx context.Context) error {
	return e.writer.Ready(ctx, e, &e.writer.damaged, &e.disk.failure)
}

// Explain asks for the query plan, whose first columns are numbers.
func (e *Engine) Explain(sql string) (statement string, column int) {
	return "EXPLAIN QUERY PLAN " + sql, 3
}
