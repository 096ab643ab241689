package store

import (
	"log/slog"
	"path/filepath"
	"sync"

	"kontor/store/internal/sqlite"
)

const (
	// checkpointFrames is the length of the log, in pages, from which it is copied into the database
	// in the background.
	checkpointFrames = 1000
	// blockingFrames is the length from which the writer waits for the copy. Under an endless stream
	// of writes a copy beside it never catches up, and the log could never start again from its
	// beginning.
	blockingFrames = 16 * checkpointFrames
)

// checkpointer moves committed pages from the log into the database file, on a connection of its own.
type checkpointer struct {
	log     *slog.Logger
	conn    *sqlite.Conn
	wake    chan struct{}
	stop    sync.Once
	ended   chan struct{}
	counted *counters
}

func newCheckpointer(dir string, log *slog.Logger, counted *counters) (*checkpointer, error) {
	conn, err := connect(filepath.Join(dir, databaseName), sqlite.ReadWrite, writerPragmas)
	if err != nil {
		return nil, err
	}
	c := &checkpointer{log: log, conn: conn, wake: make(chan struct{}, 1), ended: make(chan struct{}), counted: counted}
	go c.loop()
	return c, nil
}

// committed looks at the log after a commit of the writer.
func (c *checkpointer) committed(writer *sqlite.Conn) {
	frames := writer.LogFrames()
	if frames >= blockingFrames {
		c.copy(writer)
		return
	}
	if frames >= checkpointFrames {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

func (c *checkpointer) loop() {
	defer close(c.ended)
	for range c.wake {
		c.copy(c.conn)
	}
}

// copy runs one checkpoint. A failure only leaves the log longer.
func (c *checkpointer) copy(conn *sqlite.Conn) {
	if _, _, err := conn.Checkpoint(); err != nil {
		c.log.Warn("checkpoint failed", "err", err)
		return
	}
	c.counted.checkpoints.Add(1)
}

func (c *checkpointer) close() {
	c.stop.Do(func() { close(c.wake) })
	<-c.ended
	c.conn.Close()
}
