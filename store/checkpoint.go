package store

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"kontor/store/internal/sqlite"
)

const (
	// checkpointFrames is how many pages of the log are copied into the database at once, in the
	// background.
	checkpointFrames = 4000
	// blockingFrames is the length from which the writer waits for the copy. Under an endless stream
	// of writes a copy beside it never catches up, and the log could never start again from its
	// beginning.
	blockingFrames = 4 * checkpointFrames
	// checkpointQuiet is how long nothing must have been written for a shorter log to be copied: pages
	// that are in the database are mapped, and read a third faster than those in the log.
	checkpointQuiet = 100 * time.Millisecond
	// defaultLogLimit is the size of the log from which an alarm is raised. Ordinary work stays below the
	// 64 MiB to which the log is cut when it begins anew.
	defaultLogLimit = 256 << 20
	// frameBytes is what a page takes in the log.
	frameBytes = 4096 + 24
)

// checkpointer moves committed pages from the log into the database file, on a connection of its own.
type checkpointer struct {
	log     *slog.Logger
	disk    *disk
	mark    *mark
	conn    *sqlite.Conn
	frames  atomic.Int64 // in the log
	copied  atomic.Int64 // of these, by the last checkpoint
	limit   int64        // size of the log from which an alarm is raised
	over    atomic.Bool  // the log is larger
	failing atomic.Bool  // the last checkpoint failed
	wake    chan struct{}
	stop    chan struct{}
	ended   chan struct{}
	counted *counters
}

func newCheckpointer(db *DB, counted *counters) (*checkpointer, error) {
	conn, err := connect(db.dir.file(databaseName), sqlite.ReadWrite, writerPragmas)
	if err != nil {
		return nil, err
	}
	c := &checkpointer{
		log: db.log, disk: db.disk, mark: db.mark, conn: conn, limit: db.logLimit, counted: counted,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	go c.loop()
	return c, nil
}

// committed looks at the log after a commit of the writer.
func (c *checkpointer) committed(writer *sqlite.Conn) {
	frames := int64(writer.LogFrames())
	if frames < c.frames.Swap(frames) {
		c.copied.Store(0) // the log began anew
	}
	if frames >= blockingFrames {
		c.copy(writer)
	}
	c.watchSize(frames * frameBytes)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// watchSize raises the alarm about a log that cannot begin anew, once, and takes it back.
func (c *checkpointer) watchSize(bytes int64) {
	if over := bytes > c.limit; over == c.over.Swap(over) {
		return
	} else if over {
		c.log.Warn("the write-ahead log is larger than its limit; another program may keep a transaction on the database open",
			"bytes", bytes, "limit", c.limit)
	} else {
		c.log.Info("the write-ahead log is within its limit again", "limit", c.limit)
	}
}

func (c *checkpointer) loop() {
	defer close(c.ended)
	for {
		select {
		case <-c.wake:
		case <-c.stop:
			return
		}
		if !c.quiet() {
			return
		}
		if c.copy(c.conn) {
			c.syncMark()
		}
	}
}

// uncopied is how many pages of the log are not in the database yet.
func (c *checkpointer) uncopied() int64 { return c.frames.Load() - c.copied.Load() }

// quiet waits until the log is long or nothing was written for a while; false means the end.
func (c *checkpointer) quiet() bool {
	timer := time.NewTimer(checkpointQuiet)
	defer timer.Stop()
	for c.uncopied() < checkpointFrames {
		select {
		case <-c.wake:
			timer.Reset(checkpointQuiet)
		case <-timer.C:
			return true
		case <-c.stop:
			return false
		}
	}
	return true
}

// copy runs one checkpoint and reports whether it succeeded. A full disk only leaves the log longer; a failure of the disk
// ends the process where it happens, see [disk].
func (c *checkpointer) copy(conn *sqlite.Conn) bool {
	if c.disk.err() != nil {
		return false
	}
	begun := time.Now()
	_, copied, err := conn.Checkpoint()
	if err = translate(err); errors.Is(err, ErrBusy) || c.disk.err() != nil {
		return false // the writer or this goroutine is at it
	}
	c.report(err)
	if err != nil {
		return false
	}
	c.copied.Store(int64(copied))
	c.counted.checkpoints.Add(1)
	c.counted.checkpointed.add(time.Since(begun))
	return true
}

// report logs when checkpoints begin to fail, and when they succeed again: under load there are many a second.
func (c *checkpointer) report(err error) {
	if failing := err != nil; failing == c.failing.Swap(failing) {
		return
	}
	if err != nil {
		c.log.Error("checkpoints fail; the log grows until they succeed", "err", err)
	} else {
		c.log.Info("checkpoints succeed again")
	}
}

// syncMark makes the mark durable with what a checkpoint has copied.
func (c *checkpointer) syncMark() {
	if err := c.mark.sync(); err != nil {
		_ = c.disk.fail(err) // nobody waits for a checkpoint
	}
}

func (c *checkpointer) close() {
	close(c.stop)
	<-c.ended
	c.conn.Close()
}
