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

// Checkpoint copies the log into the database, on a connection of its own: the writer may be busy behind its answers.
func (db *DB) Checkpoint() {
	if db.disk.err() != nil {
		return
	}
	conn, err := connect(db.dir.file(databaseName), sqlite.ReadWrite, writerPragmas)
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	db.writer.checkpoints.copy(conn)
}

// OnSync puts f in the place of the sync to disk. Nobody may be writing.
func (db *DB) OnSync(f func() error) { db.writer.syncer.flush = func(*os.File) error { return f() } }

// HoldCheckpoints ends the checkpoints in the background, so that the test decides when there is one.
func (db *DB) HoldCheckpoints() {
	c := db.writer.checkpoints
	close(c.stop)
	<-c.ended
	c.stop = make(chan struct{}) // for close
}

// EncodedMark is a slot of a mark under a key of the tests, and DecodedMark reads one.
func EncodedMark(generation uint64, commits int64) []byte {
	return testSecrets().encodeMark(generation, position{commits: commits})
}

// DecodedMark reads what EncodedMark has written.
func DecodedMark(data []byte) (commits int64, ok bool) {
	_, p, ok := testSecrets().decodeMark(data)
	return p.commits, ok
}

func testSecrets() *secrets {
	s, err := newSecrets(make([]byte, masterKeyBytes))
	if err != nil {
		panic(err)
	}
	return s
}
