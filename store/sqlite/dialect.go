package sqlite

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"kontor/store/engine"
	"kontor/store/sqlite/internal/binding"

	lib "modernc.org/sqlite/lib"
)

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
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var e *binding.Error // allocated: only here, because most calls have no error
	if !errors.As(err, &e) {
		return err
	}
	if kind := classify(e); kind != nil {
		return fmt.Errorf("%w: %w", kind, err)
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

// ownStatements are the statements that the engine itself prepares. Most of them are SQLite's own.
var ownStatements = []string{beginWrite, beginRead, commit, rollback, savepoint, release, rollbackTo,
	selectTables, selectVersion, selectTableNames, selectWordsParts, selectHasRows, pragmaCheck}
