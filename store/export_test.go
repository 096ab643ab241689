package store

import "os"

// Pragma changes a setting of the connection that writes, for tests that make it fail. Nobody may be
// writing.
func (db *DB) Pragma(text string) error { return db.writer.conn.Run("PRAGMA " + text) }

// WrittenTables is the parser behind Version.
var WrittenTables = writtenTables

// QueueLength is how many closures may wait.
const QueueLength = queueLength

// OnSync puts f in the place of the sync to disk. Nobody may be writing.
func (db *DB) OnSync(f func() error) { db.writer.syncer.flush = func(*os.File) error { return f() } }

// Readers is the number of readers in the pool.
const Readers = readers

// OnRollback puts f in the place of the rollback of readers.
func (db *DB) OnRollback(f func() error) { db.pool.rollback = func(*reader) error { return f() } }

// LineLength is how many queries of one caller may wait for a reader.
const LineLength = lineLength

// EnforceShares does what a query of the caller does when it has waited for a while.
func (db *DB) EnforceShares(caller string) { db.pool.enforceShares(&waiter{caller: caller}) }
