package store

import (
	"errors"
	"log/slog"
	"path/filepath"
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
)

// checkpointer moves committed pages from the log into the database file, on a connection of its own.
type checkpointer struct {
	log     *slog.Logger
	conn    *sqlite.Conn
	frames  atomic.Int64 // in the log
	copied  atomic.Int64 // of these, by the last checkpoint
	wake    chan struct{}
	stop    chan struct{}
	ended   chan struct{}
	counted *counters
}

func newCheckpointer(dir string, log *slog.Logger, counted *counters) (*checkpointer, error) {
	conn, err := connect(filepath.Join(dir, databaseName), sqlite.ReadWrite, writerPragmas)
	if err != nil {
		return nil, err
	}
	c := &checkpointer{
		log: log, conn: conn, counted: counted,
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
	select {
	case c.wake <- struct{}{}:
	default:
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
		c.copy(c.conn)
	}
}

// quiet waits until the log is long or nothing was written for a while; false means the end.
func (c *checkpointer) quiet() bool {
	timer := time.NewTimer(checkpointQuiet)
	defer timer.Stop()
	for c.frames.Load()-c.copied.Load() < checkpointFrames {
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

// copy runs one checkpoint. A failure only leaves the log longer.
func (c *checkpointer) copy(conn *sqlite.Conn) {
	_, copied, err := conn.Checkpoint()
	if err = translate(err); errors.Is(err, ErrBusy) {
		return // the writer or this goroutine is at it
	}
	if err != nil {
		c.log.Warn("checkpoint failed", "err", err)
		return
	}
	c.copied.Store(int64(copied))
	c.counted.checkpoints.Add(1)
}

func (c *checkpointer) close() {
	close(c.stop)
	<-c.ended
	c.conn.Close()
}
