package store

import (
	"fmt"
	"syscall"

	"kontor/store/internal/sqlite"

	lib "modernc.org/sqlite/lib"
)

// This file holds what is true of SQLite only. Another engine brings its own.

const (
	databaseName = "kontor.db"

	// readerMap is how much of the file readers see through the page cache of the system instead of
	// copying it page by page.
	readerMap = 1 << 30
	// pageCacheKiB is what each connection keeps of the pages that are not mapped.
	pageCacheKiB = 4 << 10
	// lockWait is how long a statement waits for a lock. There is one writer and its readers never
	// wait in WAL mode; only recovery after a crash and a checkpoint that resets the log lock.
	lockWait = 5000

	beginWrite = "BEGIN IMMEDIATE"
	beginRead  = "BEGIN"
	commit     = "COMMIT"
	rollback   = "ROLLBACK"
	savepoint  = "SAVEPOINT job"
	release    = "RELEASE job"
	rollbackTo = "ROLLBACK TO job"

	pragmaCheck = "PRAGMA quick_check(1)"

	// logSuffix is what the name of the database becomes the name of its log with.
	logSuffix = "-wal"
)

// writerPragmas leave the sync of the log, which makes a commit survive a loss of power, to the syncer:
// NORMAL syncs where the log begins anew, FULL would at each commit and keep the writer waiting.
// Checkpoints are run by the store, beside the writer: the hook that tells the length of the log has
// taken the place of the engine's own (and "PRAGMA wal_autocheckpoint" would remove it).
var writerPragmas = []string{
	"PRAGMA journal_mode = WAL",
	"PRAGMA synchronous = NORMAL",
	"PRAGMA journal_size_limit = 67108864",
	"PRAGMA foreign_keys = ON",
	"PRAGMA trusted_schema = OFF",
	"PRAGMA temp_store = MEMORY",
	// As every other engine has it; a prefix search can then use an index.
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
func connect(path string, mode sqlite.Mode, pragmas []string) (*sqlite.Conn, error) {
	c, err := sqlite.Open(path, mode)
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

// classify says which kind of failure an error is; nil if it is none that a caller acts upon.
func classify(e *sqlite.Error) error {
	switch e.Code {
	case lib.SQLITE_CONSTRAINT_UNIQUE, lib.SQLITE_CONSTRAINT_PRIMARYKEY, lib.SQLITE_CONSTRAINT_ROWID:
		return ErrDuplicate
	case lib.SQLITE_CONSTRAINT_FOREIGNKEY:
		return ErrMissingReference
	case lib.SQLITE_CONSTRAINT_TRIGGER: // what ON DELETE RESTRICT is made of, and our own triggers
		if e.Message == "FOREIGN KEY constraint failed" {
			return ErrMissingReference
		}
	case lib.SQLITE_IOERR_NOMEM:
		return nil
	}
	switch e.Primary() {
	case lib.SQLITE_IOERR:
		return classifyErrno(e.Errno, ErrIO)
	case lib.SQLITE_CANTOPEN:
		return classifyErrno(e.Errno, ErrReadOnly)
	case lib.SQLITE_CONSTRAINT:
		return ErrConflict
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return ErrBusy
	case lib.SQLITE_FULL:
		return ErrFull
	case lib.SQLITE_READONLY, lib.SQLITE_PERM:
		return ErrReadOnly
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		return ErrCorrupt
	}
	return nil
}

// classifyErrno says which kind of failure an error number stands for; otherwise it is that of the result code.
func classifyErrno(errno syscall.Errno, otherwise error) error {
	switch errno {
	case syscall.ENOSPC, syscall.EDQUOT:
		return ErrFull
	case syscall.EIO:
		return ErrIO
	case syscall.EROFS, syscall.EACCES, syscall.EPERM:
		return ErrReadOnly
	}
	return otherwise
}

// appendOnly keeps the audit trail from being changed by anything but a look at the file. Triggers
// are written differently for every engine, so they are no migration.
var appendOnly = []string{
	`CREATE TRIGGER IF NOT EXISTS audit_entries_no_update BEFORE UPDATE ON audit_entries
		BEGIN SELECT RAISE(ABORT, 'audit entries are append-only'); END`,
	`CREATE TRIGGER IF NOT EXISTS audit_entries_no_delete BEFORE DELETE ON audit_entries
		BEGIN SELECT RAISE(ABORT, 'audit entries are append-only'); END`,
}
