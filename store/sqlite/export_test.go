package sqlite

import (
	"os"
	"syscall"

	"kontor/store/audittrail"
	"kontor/store/datadir"
	"kontor/store/internal/jobs"
	"kontor/store/internal/readers"
	"kontor/store/sealing"
	"kontor/store/sqlite/internal/binding"
)

// QueueLength is how many jobs may wait.
const QueueLength = jobs.QueueLength

// Readers is the number of readers in the pool.
const Readers = poolSize

// MaxWaitingPerCaller is how many queries of one caller may wait for a reader.
const MaxWaitingPerCaller = readers.MaxWaitingPerCaller

// Pragma changes a setting of the connection that writes, to make it fail. The writer may still use the connection when the last caller
// has its answer, so a test needs a bubble, and waits in it before.
func (e *Engine) Pragma(text string) error { return e.writer.conn.Run("PRAGMA " + text) }

// Intercept makes operations on the files of the database fail: op is "read", "write", "truncate" or "sync", file is
// "kontor.db" or "kontor.db-wal".
func (e *Engine) Intercept(f func(op, file string) syscall.Errno) {
	e.disk.watch.SetIntercept(func(op binding.Op, kind binding.Kind, _ int64) syscall.Errno {
		file := datadir.Database
		if kind == binding.Log {
			file += logSuffix
		}
		return f(op.String(), file)
	})
}

// Checkpoint copies the log into the database, on a connection of its own: the writer may be busy.
func (e *Engine) Checkpoint() {
	if e.disk.err() != nil {
		return
	}
	conn, err := connect(e.dir.File(datadir.Database), binding.ReadWrite, writerPragmas)
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	e.writer.checkpoints.copy(conn)
}

// HoldCheckpoints ends the checkpoints in the background, so that only the test runs them.
func (e *Engine) HoldCheckpoints() {
	c := e.writer.checkpoints
	close(c.stop)
	<-c.ended
	c.stop = make(chan struct{}) // for close
}

// Touched is the number of touches that are remembered of a followed table.
func (e *Engine) Touched(table string) int {
	e.touches.mu.Lock()
	defer e.touches.mu.Unlock()
	return len((*e.touches.followed.Load())[table].rows)
}

// OnSync replaces the sync to disk by f. No job may be running.
func (e *Engine) OnSync(f func() error) { e.writer.syncer.flush = func(*os.File) error { return f() } }

// OnRollback replaces the rollback of readers by f.
func (e *Engine) OnRollback(f func() error) { e.rollback = func(*reader) error { return f() } }

// EnforceShares does what a query of the caller does when it has waited for a while.
func (e *Engine) EnforceShares(caller string) { e.pool.EnforceShares(caller) }

// EncodedMark returns a slot of a mark under a key of the tests.
func EncodedMark(generation uint64, commits int64) []byte {
	return encodeMark(testKeys(), generation, position{commits: commits})
}

// DecodedMark reads what EncodedMark returned.
func DecodedMark(data []byte) (commits int64, ok bool) {
	_, p, ok := decodeMark(testKeys(), data)
	return p.commits, ok
}

func testKeys() signer {
	keys, err := sealing.New(make([]byte, sealing.MasterKeyBytes))
	if err != nil {
		panic(err)
	}
	return audittrail.NewGuard(keys, "")
}
