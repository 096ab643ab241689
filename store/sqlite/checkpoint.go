package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/internal/jobs"
	"kontor/store/query"
	"kontor/store/sqlite/internal/binding"
)

const (
	// checkpointFrames is how many pages of the log are copied into the database at once, in the background.
	checkpointFrames = 4000
	// blockingFrames is the length of the log from which the writer waits for the copy. Under an endless stream of writes a
	// copy beside the writer never catches up, and the log could never start again from its beginning.
	blockingFrames = 4 * checkpointFrames
	// checkpointQuiet is how long no write must have happened before a shorter log is copied. Pages in the database are
	// mapped and read a third faster than those in the log.
	checkpointQuiet = 100 * time.Millisecond
	// eraseEvery is how often the log is truncated at most. The log keeps deleted content until its pages are overwritten. A
	// truncated log has to grow again, which costs more than to overwrite it.
	eraseEvery = 5 * time.Second
	// eraseRetry is when a truncation that a reader has prevented is tried again.
	eraseRetry = time.Second
	// cleanRetry is the same for a truncation that a caller waits for.
	cleanRetry = 100 * time.Millisecond
	// defaultLogLimit is the size of the log from which an alarm is raised. In ordinary work the log stays below 64 MiB, to
	// which it is truncated when it starts again.
	defaultLogLimit = 256 << 20
	// frameBytes is the size of a page in the log.
	frameBytes = 4096 + 24
)

// checkpointer copies committed pages from the log into the database file, on a connection of its own.
type checkpointer struct {
	log     *slog.Logger
	disk    *disk
	mark    *mark
	conn    *binding.Conn
	frames  atomic.Int64 // pages in the log
	copied  atomic.Int64 // of these, by the last checkpoint
	limit   int64        // size of the log from which an alarm is raised
	over    atomic.Bool  // the log is larger
	failing atomic.Bool  // the last checkpoint failed
	// requests are the callers of clean; waiting are those that the loop has taken.
	requests chan chan struct{}
	waiting  []chan struct{}

	wake   chan struct{}
	stop   chan struct{}
	ended  chan struct{}
	copies jobs.Timing // checkpoints that succeeded
}

func newCheckpointer(path string, log *slog.Logger, disk *disk, mark *mark, logLimit int64) (*checkpointer, error) {
	conn, err := connect(path, binding.ReadWrite, writerPragmas)
	if err != nil {
		return nil, err
	}
	c := &checkpointer{
		log: log, disk: disk, mark: mark, conn: conn, limit: logLimit,
		requests: make(chan chan struct{}),
		wake:     make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	go c.loop()
	return c, nil
}

// committed records the length of the log after a commit of the writer.
func (c *checkpointer) committed(writer *binding.Conn) {
	frames := int64(writer.LogFrames())
	if frames < c.frames.Swap(frames) {
		c.copied.Store(0) // the log started again
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

// watchSize logs once that the log is larger than its limit, and once that it is within the limit again.
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
	var next time.Time // when the log may be truncated
	retry := time.NewTimer(eraseEvery)
	retry.Stop()
	defer retry.Stop()
	for {
		select {
		case <-c.wake:
			if !c.quiet() {
				return
			}
			if c.copy(c.conn) {
				c.syncMark()
			}
		case <-retry.C:
			if c.uncopied() > 0 { // a reader prevented the last copy
				c.copy(c.conn)
			}
		case done := <-c.requests:
			c.waiting = append(c.waiting, done)
		case <-c.stop:
			return
		}
		if !c.serveRequests() {
			retry.Reset(cleanRetry)
			continue
		}
		switch wait := time.Until(next); {
		case wait > 0:
			retry.Reset(wait)
		case c.uncopied() <= 0 && c.erase():
			next = time.Now().Add(eraseEvery)
			retry.Stop()
		default:
			retry.Reset(eraseRetry)
		}
	}
}

// erase truncates a log that was copied, so that nothing of a deleted row remains in it. It costs no sync, and waits neither
// for the writer nor for readers: it returns false when they use the log.
func (c *checkpointer) erase() bool { return c.truncate(0) }

// truncate is erase with a time to wait for the writer and for readers, in milliseconds.
func (c *checkpointer) truncate(wait int) bool {
	if c.disk.err() != nil {
		return false
	}
	frames := c.frames.Load()
	c.conn.BusyTimeout(wait)
	defer c.conn.BusyTimeout(lockWait)
	err := translate(c.conn.EmptyLog())
	if errors.Is(err, engine.ErrBusy) || c.disk.err() != nil {
		return false
	}
	c.report(err)
	if err != nil {
		return false
	}
	c.frames.CompareAndSwap(frames, 0) // unless the writer has committed since
	c.copied.Store(0)
	return true
}

// uncopied returns how many pages of the log are not in the database file yet.
func (c *checkpointer) uncopied() int64 { return c.frames.Load() - c.copied.Load() }

// quiet waits until the log is long or nothing was written for a while. It returns false when the checkpointer is closed.
func (c *checkpointer) quiet() bool {
	timer := time.NewTimer(checkpointQuiet)
	defer timer.Stop()
	for c.uncopied() < checkpointFrames {
		select {
		case <-c.wake:
			timer.Reset(checkpointQuiet)
		case done := <-c.requests:
			c.waiting = append(c.waiting, done)
			return true
		case <-timer.C:
			return true
		case <-c.stop:
			return false
		}
	}
	return true
}

// copy runs one checkpoint and reports whether it succeeded. On a full disk the log stays longer. A failure of the disk ends
// the process where it happens, see [disk].
func (c *checkpointer) copy(conn *binding.Conn) bool {
	if c.disk.err() != nil {
		return false
	}
	begun := time.Now()
	_, copied, err := conn.Checkpoint()
	if err = translate(err); errors.Is(err, engine.ErrBusy) || c.disk.err() != nil {
		return false // another checkpoint is running
	}
	c.report(err)
	if err != nil {
		return false
	}
	c.copied.Store(int64(copied))
	c.copies.Add(time.Since(begun))
	return true
}

// report logs when checkpoints begin to fail and when they succeed again, not each: under load there are many per second.
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

// syncMark makes the mark durable after a checkpoint.
func (c *checkpointer) syncMark() {
	if err := c.mark.sync(); err != nil {
		_ = c.disk.fail(err) // no caller waits for a checkpoint
	}
}

func (c *checkpointer) close() {
	close(c.stop)
	<-c.ended
	c.conn.Close()
}

const (
	// metaCleaned is the row of the table meta that says that no page is left from before the file layer cleared unused bytes.
	metaCleaned = "pages_cleaned"
	// cleanBatch is how many pages one job writes again.
	cleanBatch = 100
	// cleanWait is how long an attempt to truncate the log waits for readers and for the writer, in milliseconds.
	cleanWait = 50
)

// rewritePage writes a page with its present content. Its copy into the database file loses the unused bytes.
const rewritePage = `UPDATE sqlite_dbpage SET data = data WHERE pgno = $1`

// Clean returns when no file of the database holds anything that was deleted before the call. The first call rewrites the pages
// that earlier versions have written.
func (e *Engine) Clean(ctx context.Context) error {
	if err := e.CleanOldPages(ctx); err != nil {
		return err
	}
	return e.writer.checkpoints.clean(ctx)
}

// CleanOldPages rewrites the pages with unused bytes that earlier versions did not clear, once for each database.
func (e *Engine) CleanOldPages(ctx context.Context) error {
	if _, done, err := query.Meta(ctx, query.NewView(e, 0), metaCleaned); err != nil || done {
		return err
	}
	conn, err := connect(e.dir.File(datadir.Database), binding.ReadOnly, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Run("SELECT 1 FROM meta"); err != nil { // the file layer reads the first page
		return translate(err)
	}
	for from := int64(1); from != 0; {
		var pages []int64
		if pages, from, err = conn.UnscrubbedPages(ctx, from, cleanBatch); err != nil {
			return fmt.Errorf("find pages to clean: %w", translate(err))
		}
		if err := e.rewrite(ctx, pages); err != nil {
			return fmt.Errorf("clean pages: %w", err)
		}
	}
	return e.Write(ctx, func(tx engine.Tx) error {
		_, err := query.Exec(ctx, tx, engine.UpsertMeta, []any{metaCleaned, "1"})
		return err
	})
}

func (e *Engine) rewrite(ctx context.Context, pages []int64) error {
	if len(pages) == 0 {
		return nil
	}
	return e.Write(ctx, func(tx engine.Tx) error {
		for _, page := range pages {
			if _, err := query.Exec(ctx, tx, rewritePage, []any{page}); err != nil {
				return err
			}
		}
		return nil
	})
}

// clean waits until the log was copied and truncated once since the call.
func (c *checkpointer) clean(ctx context.Context) error {
	if err := c.disk.err(); err != nil {
		return err
	}
	done := make(chan struct{})
	select {
	case c.requests <- done:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ended:
		return engine.ErrClosed
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ended:
		return engine.ErrClosed
	}
}

// serveRequests copies and truncates the log for the callers of clean. While a reader uses the log it returns false, and is
// tried again.
func (c *checkpointer) serveRequests() bool {
	if len(c.waiting) == 0 {
		return true
	}
	c.copy(c.conn)
	if !c.truncate(cleanWait) {
		return false
	}
	c.syncMark()
	for _, done := range c.waiting {
		close(done)
	}
	c.waiting = nil
	return true
}
