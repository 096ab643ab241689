package store

import (
	"os"
	"syscall"

	"kontor/store/internal/sqlite"
)

// Pragma changes a setting of the connection that writes, for tests that make it fail. Nobody may be
// writing.
func (db *DB) Pragma(text string) error { return db.writer.conn.Run("PRAGMA " + text) }

// WrittenTables is the parser behind Version.
var WrittenTables = writtenTables

// QueueLength is how many closures may wait.
const QueueLength = queueLength

// Intercept makes operations on the files of the database fail: op is "read", "write", "truncate" or "sync", file is
// "kontor.db" or "kontor.db-wal".
func (db *DB) Intercept(f func(op, file string) syscall.Errno) {
	db.disk.watch.SetIntercept(func(op sqlite.Op, kind sqlite.Kind, _ int64) syscall.Errno {
		file := databaseName
		if kind == sqlite.Log {
			file += logSuffix
		}
		return f(op.String(), file)
	})
}

// Checkpoint copies the log into the database on the connection that writes. Nobody may be writing.
func (db *DB) Checkpoint() { db.writer.checkpoints.copy(db.writer.conn) }

// OnSync puts f in the place of the sync to disk. Nobody may be writing.
func (db *DB) OnSync(f func() error) { db.writer.syncer.flush = func(*os.File) error { return f() } }
